//! Clauses on denials: recorded, but throttled so that a flood cannot fill the disk.

use seatkeeper_core::{Change, DENIAL_WINDOW, DENIALS_RECORDED_PER_WINDOW_MAX, Denied};

use super::books::{events_of, sweep_all};
use super::harness::{Harness, Scene};
use super::plan::seats;
use super::pool::TestPool;

const COUNTED: u64 = 5;

pub async fn denials_past_a_rate_are_counted_into_one_record(h: &impl Harness) {
    let pool = a_pool_that_denied_too_often(h).await;
    let recorded = on_record(&pool).await;
    assert_eq!(recorded.len(), DENIALS_RECORDED_PER_WINDOW_MAX as usize);
    assert!(recorded.iter().all(|denied| (denied.count, denied.folded) == (1, false)), "{recorded:?}");

    h.let_pass(DENIAL_WINDOW).await;
    for _ in 0..2 {
        sweep_all(&*pool.registry).await;
        let counted = on_record(&pool).await.split_off(recorded.len());
        let told: Vec<_> = counted.iter().map(|denied| (denied.count, denied.folded)).collect();
        assert_eq!(told, [(COUNTED, true)]);
        assert_eq!(counted[0].holder.as_str(), "eve");
    }
}

pub async fn counted_denials_come_on_record_with_the_next_window(h: &impl Harness) {
    let pool = a_pool_that_denied_too_often(h).await;
    let recorded = on_record(&pool).await.len();
    h.let_pass(DENIAL_WINDOW).await;
    pool.claim("eve").await.full();
    let since: Vec<_> = on_record(&pool).await.split_off(recorded);
    let told: Vec<_> = since.iter().map(|denied| (denied.count, denied.folded)).collect();
    assert_eq!(told, [(COUNTED, true), (1, false)]);
}

pub async fn counted_denials_are_due_when_their_window_is_over(h: &impl Harness) {
    let pool = a_pool_that_denied_too_often(h).await;
    let by = h.now().await + DENIAL_WINDOW;
    let due = pool.registry.due(pool.bucket()).await.expect("a bucket knows what is due");
    assert!(due.is_some_and(|due| due <= by), "due at {due:?}, expected by {by:?}");
}

/// Returns a full pool with some denials that were only counted.
async fn a_pool_that_denied_too_often(h: &impl Harness) -> TestPool {
    let pool = h.pool(seats(1)).await;
    pool.claim("ann").await.admitted();
    for _ in 0..u64::from(DENIALS_RECORDED_PER_WINDOW_MAX) + COUNTED {
        pool.claim("eve").await.full();
    }
    pool
}

async fn on_record(pool: &TestPool) -> Vec<Denied> {
    let events = events_of(&*pool.registry, &pool.id).await.into_iter();
    let denied = events.filter_map(|event| match event.change {
        Change::Denied(denied) => Some(denied),
        Change::Admitted { .. } | Change::Ended { .. } => None,
    });
    denied.collect()
}
