//! A process that uses a ledger in PostgreSQL alone: no other process, and no node, uses the ledger beside it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use seatkeeper_core::{BucketSet, Event, RegistryTime, epoch_after};
use seatkeeper_ledger::nodes::NodeRow;
use seatkeeper_ledger::{Error, Ledger, SoleUse};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::place::TestLedger;
use crate::story::{EPOCH, Story, ledger, licensed};

const WAIT_MAX: Duration = Duration::from_secs(30);

const PAUSE: Duration = Duration::from_millis(20);

fn node(named: BTreeSet<Uuid>) -> NodeRow {
    let (id, unreachable) = (Uuid::from_u128(1), BucketSet::default());
    NodeRow { id, name: "node-1".to_owned(), unreachable, named }
}

/// Takes the ledger once PostgreSQL has noticed the end of the process before.
async fn taken(ledger: &Ledger) -> SoleUse {
    taken_with(ledger, 0).await
}

/// Takes the ledger like [`taken`], with an epoch of the random bits `random`.
async fn taken_with(ledger: &Ledger, random: u16) -> SoleUse {
    let started = Instant::now();
    loop {
        match ledger.take_alone("memory", random).await {
            Err(Error::InUse) if started.elapsed() < WAIT_MAX => tokio::time::sleep(PAUSE).await,
            taken => return taken.unwrap(),
        }
    }
}

/// Cuts the connection that has the lock.
async fn cut_lock(place: &TestLedger) {
    const CUT: &str =
        "SELECT pg_terminate_backend(pid, 30000) FROM pg_locks JOIN pg_database ON pg_database.oid = database
        WHERE datname = current_database() AND locktype = 'advisory'";
    let cut: Vec<bool> = sqlx::query_scalar(CUT).fetch_all(&mut place.connect().await).await.unwrap();
    assert_eq!(cut, [true]);
}

#[tokio::test]
async fn a_ledger_in_sole_use_is_refused_to_all_others() {
    let (place, ledger) = ledger().await;
    let other = place.another(&ledger).await;
    let sole_use = ledger.take_alone("memory", 0).await.unwrap();
    assert!(matches!(other.take_alone("memory", 0).await, Err(Error::InUse)));
    assert!(matches!(other.check_shareable().await, Err(Error::InUse)));
    assert!(matches!(other.node_reads(&node(BTreeSet::new())).await, Err(Error::InUse)));
    let repair = other.plan_clock_repair(RegistryTime::default(), "ann").await;
    assert!(matches!(repair, Ok(None)), "nothing is on record");
    sole_use.check().await.unwrap();

    sole_use.end().await;
    let next = taken(&other).await;
    assert_eq!(next.epoch(), epoch_after(sole_use.epoch(), 0));
    drop(next);
    taken(&ledger).await.end().await;
}

#[tokio::test]
async fn a_lost_lock_is_taken_again_unless_another_process_has_taken_the_ledger() {
    let (place, ledger) = ledger().await;
    let other = place.another(&ledger).await;
    let sole_use = ledger.take_alone("memory", 0).await.unwrap();
    cut_lock(&place).await;
    sole_use.check().await.unwrap();
    assert!(matches!(other.take_alone("memory", 0).await, Err(Error::InUse)), "taken again");

    cut_lock(&place).await;
    let next = taken(&other).await;
    assert!(matches!(sole_use.check().await, Err(Error::TakenOver)));
    next.check().await.unwrap();
}

/// The standby was promoted without the start of the first process.
#[tokio::test]
async fn two_processes_that_use_a_ledger_and_its_copy_alone_have_different_epochs() {
    let (place, ledger) = ledger().await;
    let other = place.another(&ledger).await;
    let mut story = Story::new(&licensed(&ledger, 2).await);
    let first = ledger.take_alone("memory", 1).await.unwrap();
    let forgets = "UPDATE buckets SET epoch = $1, ledger_identity = 'elsewhere'";
    sqlx::query(forgets).bind(EPOCH as i64).execute(&mut place.connect().await).await.unwrap();
    first.end().await;
    let second = taken_with(&other, 2).await;

    let of_first = Event { epoch: first.epoch(), ..story.admit("one").1 };
    let refused = ledger.apply(&[of_first]).await;
    assert!(matches!(refused, Err(Error::StaleEpoch { .. })), "{refused:?}");
    assert!(second.epoch() > first.epoch());
}

/// A copy made after the start has the same epoch. A standby promoted without the start of the first process gets the same
/// epoch by the start of a second process.
#[tokio::test]
async fn a_copy_and_a_start_of_another_process_are_noticed_at_the_same_epoch() {
    for change in ["ledger_identity = 'elsewhere'", "registry_identity = 'another process'"] {
        let (place, ledger) = ledger().await;
        let sole_use = ledger.take_alone("memory", 0).await.unwrap();
        sole_use.check().await.unwrap();
        let change = AssertSqlSafe(format!("UPDATE buckets SET {change}"));
        sqlx::query(change).execute(&mut place.connect().await).await.unwrap();
        assert!(matches!(sole_use.check().await, Err(Error::TakenOver)));
    }
}

/// A rebuild raises the buckets of a single server of a cluster.
#[tokio::test]
async fn a_raise_of_a_single_bucket_is_noticed() {
    let (place, ledger) = ledger().await;
    let sole_use = ledger.take_alone("memory", 0).await.unwrap();
    let raise = "UPDATE buckets SET epoch = epoch + 1 WHERE id = 7";
    sqlx::query(raise).execute(&mut place.connect().await).await.unwrap();
    assert!(matches!(sole_use.check().await, Err(Error::TakenOver)));
}

#[tokio::test]
async fn a_ledger_of_nodes_is_taken_once_none_may_serve() {
    let (place, ledger) = ledger().await;
    let mut direct = place.connect().await;
    let silent = "UPDATE nodes SET seen_at = seen_at - INTERVAL '1 hour'";
    let extending = node([Uuid::from_u128(2)].into());
    for _ in 0..2 {
        ledger.node_reads(&extending).await.unwrap();
    }
    for state in ["live", "silent, and may extend its lease"] {
        let refused = ledger.take_alone("memory", 0).await.map(|_| ());
        assert!(
            matches!(&refused, Err(Error::NodesServe { nodes }) if nodes == &["node-1"]),
            "{state}: {refused:?}"
        );
        sqlx::query(silent).execute(&mut direct).await.unwrap();
    }

    ledger.node_reads(&node(BTreeSet::new())).await.unwrap();
    sqlx::query(silent).execute(&mut direct).await.unwrap();
    let _sole_use = taken(&ledger).await;
    let returned = ledger.node_reads(&node(BTreeSet::new())).await;
    assert!(matches!(returned, Err(Error::InUse)), "{returned:?}");
}
