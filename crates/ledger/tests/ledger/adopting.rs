//! Begins of an adoption in PostgreSQL at the same time as other begins, and as homes that come over.

use std::time::Duration;

use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::homes::{Arrival, ArrivalKind};
use sqlx::{Connection as _, Executor as _};
use tokio::time::timeout;

use crate::homes::{LOST, NOW, OWN, SECOND, arrival, home_of, terms};
use crate::locking::waits_for_a_lock;
use crate::story::ledger;

/// Longer than any operation takes without waiting for a lock.
const PATIENCE: Duration = Duration::from_secs(10);

/// A begin at `NOW`, with a home that has come over since.
const BEGIN: &str = "
    INSERT INTO region_adoptions (lost, successor, admits_from, first_admits_from, is_done, audit_head, at)
    VALUES (3, 1, to_timestamp(1800000000), to_timestamp(1800000000), 0, 0, now());
    INSERT INTO homes (tenant_id, user_id, region, version, state, since, admits_from)
    VALUES ('acme', 'ann', 1, 2, 'here', now(), to_timestamp(1800000000))";

#[tokio::test(flavor = "multi_thread")]
async fn a_begin_that_waits_for_another_begin_prolongs_the_silence_of_homes() {
    let (place, ledger) = ledger().await;
    let (mut connection, mut observer) = (place.connect().await, place.connect().await);
    let mut first = connection.begin().await.unwrap();
    first.execute(BEGIN).await.unwrap();
    let second = tokio::spawn(begin_later(ledger.clone()));
    waits_for_a_lock(&mut observer).await;
    first.commit().await.unwrap();
    timeout(PATIENCE, second).await.expect("nobody holds it up").unwrap();
    assert_eq!(home_of(&ledger, "ann").await.admits_from, Some(NOW + SECOND));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_home_that_waits_for_a_begin_is_silent_from_the_begin_on() {
    let (place, ledger) = ledger().await;
    ledger.note_adoption((LOST, OWN), NOW, OWN).await.unwrap();
    let terms = terms(&ledger).await;
    let (mut connection, mut observer) = (place.connect().await, place.connect().await);
    let mut begin = connection.begin().await.unwrap();
    begin.execute("UPDATE region_adoptions SET admits_from = to_timestamp(1800000001)").await.unwrap();
    let taking = tokio::spawn({
        let (ledger, stale) = (ledger.clone(), Some(NOW));
        let arrival = arrival(2, Vec::new());
        let adopted = Arrival { from: LOST, kind: ArrivalKind::Adopted, admits_from: stale, ..arrival };
        async move { ledger.take_home(&adopted, OWN, terms, NOW).await }
    });
    waits_for_a_lock(&mut observer).await;
    begin.commit().await.unwrap();
    let taken = timeout(PATIENCE, taking).await.expect("nobody holds it up").unwrap().unwrap();
    assert_eq!(taken.unwrap().admits_from, Some(NOW + SECOND));
}

async fn begin_later(ledger: Ledger) {
    ledger.note_adoption((LOST, OWN), NOW + SECOND, OWN).await.unwrap();
}
