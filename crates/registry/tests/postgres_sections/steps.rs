//! Steps whose data changed between read and write are not made. The tests force rare interleavings of two
//! nodes, or of a node and a rebuild, by holding back the write.

use std::time::{Duration, Instant};

use seatkeeper_core::{Bucket, PoolKind};
use seatkeeper_registry::{Answer, Error, Journal as _, Rebuild as _};
use sqlx::{Connection as _, Executor as _, PgConnection};

use super::{EPOCH, SEATS, Sections, ask, claim, pool};

/// Deadline for the steps to reach their write.
const PATIENCE: Duration = Duration::from_secs(4);

/// A lock on a bucket of the rebuilt section: steps can read, and not write.
struct Held {
    turn: PgConnection,
    /// Counts waiting steps; a separate connection, because statistics are frozen within a transaction.
    eyes: PgConnection,
}

impl Held {
    async fn back(sections: &Sections, bucket: Bucket) -> Self {
        let url = sections.database.url();
        let mut turn = PgConnection::connect(&url).await.expect("a connection");
        let eyes = PgConnection::connect(&url).await.expect("a connection");
        turn.execute("BEGIN").await.expect("a transaction");
        let row = sqlx::query("SELECT FROM registry.buckets WHERE bucket = $1 FOR UPDATE");
        turn.execute(row.bind(bucket.number().cast_signed())).await.expect("the turn");
        Self { turn, eyes }
    }

    /// Waits until `writers` steps have read and wait to write.
    async fn until_wait(&mut self, writers: i64) {
        let waiting = "SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let started = Instant::now();
        while sqlx::query_scalar::<_, i64>(waiting).fetch_one(&mut self.eyes).await.expect("a count")
            < writers
        {
            assert!(started.elapsed() < PATIENCE, "nobody is held back");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn let_go(mut self) {
        self.turn.execute("COMMIT").await.expect("a commit");
    }
}

#[tokio::test]
async fn of_two_nodes_that_saw_the_same_free_seat_one_gives_it_away() {
    let sections = Sections::start().await;
    let license = pool(PoolKind::License);
    sections.serve(license.bucket(), EPOCH).await;
    let another = sections.another_node().await;
    claim(&sections.rebuilt, &license).await;
    for holder in 2..SEATS {
        ask(&sections.rebuilt, &license, &holder.to_string()).await.expect("an answer");
    }

    let mut held = Held::back(&sections, license.bucket()).await;
    let asking =
        async { tokio::join!(ask(&sections.rebuilt, &license, "bob"), ask(&another, &license, "cid")) };
    let letting_go = async {
        held.until_wait(2).await;
        held.let_go().await;
    };
    let ((bob, cid), ()) = tokio::join!(asking, letting_go);
    let granted =
        [bob, cid].map(|claimed| matches!(claimed.expect("an answer").answer, Answer::Granted { .. }));
    assert_ne!(granted[0], granted[1], "one is granted the seat, and one is denied");
    let read = sections.rebuilt.journal_read(100).await.expect("a journal");
    let seqs: Vec<_> = read.entries.iter().map(|entry| entry.event.seq).collect();
    let of_all = (1..=u64::from(SEATS) + 1).collect::<Vec<_>>();
    assert_eq!(seqs, of_all, "each admission and the denial have a number of their own");
}

#[tokio::test]
async fn a_step_that_a_rebuild_overtakes_is_not_made() {
    let sections = Sections::start().await;
    let license = pool(PoolKind::License);
    let bucket = license.bucket();
    sections.serve(bucket, EPOCH).await;
    claim(&sections.rebuilt, &license).await;

    let mut held = Held::back(&sections, bucket).await;
    let begun = async {
        held.until_wait(1).await;
        let begin = sqlx::query("SELECT registry.rebuild_begin($1, $2)");
        let begin = begin.bind(bucket.number().cast_signed()).bind(EPOCH.cast_signed() + 1);
        held.turn.execute(begin).await.expect("a rebuild can begin");
        held.let_go().await;
    };
    let (asked, ()) = tokio::join!(ask(&sections.rebuilt, &license, "bob"), begun);
    assert!(matches!(asked, Err(Error::NotServing { .. })), "{asked:?}");
    let replayed = sections.rebuilt.rebuild_journal(bucket, EPOCH + 1, None, 10).await.expect("a journal");
    assert_eq!(replayed.len(), 1, "nothing is added behind the back of who reads it");
}
