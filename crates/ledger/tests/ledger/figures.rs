//! Figures for operators.

use std::collections::BTreeMap;

use seatkeeper_core::{EndReason, PoolKind};
use seatkeeper_ledger::LicenseSeats;

use crate::story::{Story, ledger, licensed};

#[tokio::test]
async fn live_sessions_are_counted_by_the_kind_of_their_pool() {
    let (_place, ledger) = ledger().await;
    assert_eq!(ledger.live_by_kind().await.unwrap(), BTreeMap::new());
    let mut seats = Story::new(&licensed(&ledger, 3).await);
    let mut screens = Story::devices("ann");
    let (over, a) = seats.admit("one");
    let events = [a, seats.admit("two").1, seats.end(over, EndReason::Released), screens.admit("tv").1];
    ledger.apply(&events).await.unwrap();
    let live = BTreeMap::from([(PoolKind::License, 1), (PoolKind::Subscriber, 1)]);
    assert_eq!(ledger.live_by_kind().await.unwrap(), live);
}

#[tokio::test]
async fn of_many_licenses_those_are_told_that_are_used_most() {
    let (_place, ledger) = ledger().await;
    let (busy, idle) = (licensed(&ledger, 9).await, licensed(&ledger, 2).await);
    let used = licensed(&ledger, 5).await;
    for (license, holders) in [(&busy, 2), (&used, 1)] {
        let mut story = Story::new(license);
        let events: Vec<_> = (0..holders).map(|holder| story.admit(&holder.to_string()).1).collect();
        ledger.apply(&events).await.unwrap();
    }
    let seats = |license: &seatkeeper_ledger::licenses::License, used| LicenseSeats {
        license: license.id,
        used,
        total: license.max_seats.0,
    };
    let by_use = [seats(&busy, 2), seats(&used, 1), seats(&idle, 0)];
    for max in [0, 1, 2, 3, 10] {
        let mut told = ledger.license_seats(max).await.unwrap();
        told.sort_by_key(|seats| std::cmp::Reverse(seats.used));
        assert_eq!(told, by_use[..by_use.len().min(max as usize)], "{max} at most");
    }
}

#[tokio::test]
async fn nothing_waits_in_the_outbox_of_a_ledger_that_meters_nothing() {
    let (_place, ledger) = ledger().await;
    assert_eq!(ledger.usage_outbox_depth().await.unwrap(), 0);
}
