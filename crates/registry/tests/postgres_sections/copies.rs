//! A copy of the database that takes over: a promoted standby, or a restored backup.

use std::time::Duration;

use seatkeeper_core::PoolKind;
use seatkeeper_registry::{Admission as _, Error, Journal as _, Receipt};
use sqlx::{Connection as _, PgConnection};

use super::{EPOCH, Sections, ask, claim, pool};

/// Time limit for the node's new connections.
const RECONNECTED_WITHIN: Duration = Duration::from_secs(30);

const CUT_OFF: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE application_name = 'seatkeeper registry' AND datname = current_database()";

/// Gives the database the identity of a copy.
const REPLACE: &str =
    "CREATE OR REPLACE FUNCTION registry.identity() RETURNS text LANGUAGE sql AS $$ SELECT 'a copy' $$";

/// Otherwise a position that the copy gives out again would count as recorded.
#[tokio::test]
async fn receipts_of_a_copy_are_of_a_later_epoch_and_older_receipts_acknowledge_nothing() {
    let sections = Sections::start().await;
    let lasting = &sections.lasting;
    let capacity = pool(PoolKind::Capacity);
    let bucket = capacity.bucket();
    sections.serve(bucket, EPOCH).await;
    let (_, claimed) = claim(lasting, &capacity).await;
    let mut operator = PgConnection::connect(&sections.database.url()).await.expect("a connection");

    cut_off(&mut operator).await;
    assert_eq!(retried(|| lasting.journal_end(bucket)).await, claimed.receipt, "the same database");

    sqlx::raw_sql(REPLACE).execute(&mut operator).await.expect("another identity");
    cut_off(&mut operator).await;
    let end = retried(|| lasting.journal_end(bucket)).await;
    assert_eq!(end, Receipt { epoch: end.epoch, ..claimed.receipt });
    assert!(end.epoch > claimed.receipt.epoch, "{end:?}");

    retried(|| lasting.journal_acknowledge(claimed.receipt)).await;
    let read = retried(|| lasting.journal_read(100)).await;
    let receipts: Vec<_> = read.entries.iter().map(|entry| entry.receipt).collect();
    assert_eq!(receipts, [end], "the ledger in the copy may lack the event");
    let again = retried(|| ask(lasting, &capacity, "ann")).await;
    assert_eq!(again.receipt, end, "a retry rests on the same event");
    retried(|| lasting.journal_acknowledge(end)).await;
    assert_eq!(retried(|| lasting.journal_read(100)).await.entries.len(), 0);
}

/// Otherwise a node that read the record before the copy took over would give numbers of events out again.
#[tokio::test]
async fn a_record_that_was_read_before_a_copy_took_over_opens_no_pool() {
    let sections = Sections::start().await;
    let lasting = &sections.lasting;
    let capacity = pool(PoolKind::Capacity);
    sections.serve(capacity.bucket(), EPOCH).await;
    let closed_at = retried(|| lasting.closed_at(&capacity)).await.expect("the pool is closed");
    let mut operator = PgConnection::connect(&sections.database.url()).await.expect("a connection");

    sqlx::raw_sql(REPLACE).execute(&mut operator).await.expect("another identity");
    cut_off(&mut operator).await;
    let open = async |closed_at| {
        retried(|| lasting.open_if_recent(closed_at, &capacity, 1, None, Vec::new())).await;
    };
    open(closed_at).await;
    let closed_at = retried(|| lasting.closed_at(&capacity)).await.expect("the pool is still closed");
    open(closed_at).await;
    assert_eq!(retried(|| lasting.closed_at(&capacity)).await, None, "the pool is open");
}

/// Closes the connections of every node.
async fn cut_off(operator: &mut PgConnection) {
    sqlx::raw_sql(CUT_OFF).execute(operator).await.expect("the connections end");
}

/// Repeats a call until the node has connected again.
async fn retried<T, F: Future<Output = Result<T, Error>>>(call: impl Fn() -> F) -> T {
    let answered = async {
        loop {
            match call().await {
                Ok(answer) => return answer,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    tokio::time::timeout(RECONNECTED_WITHIN, answered).await.expect("the node connects again")
}
