//! Clauses on the registry's time, which is monotonic for any behaviour of the underlying clock.

use seatkeeper_core::Span;

use super::books::sweep_all;
use super::harness::{Harness, Scene};
use super::plan::seats;

const STEP: Span = Span::from_secs(3_600);

/// Maximum lead of the estimated time: a fraction of a second.
const AHEAD_MAX: Span = Span::from_millis(200);

pub async fn time_never_goes_back(h: &impl Harness) {
    let mut latest = h.now().await;
    for _ in 0..3 {
        h.let_a_moment_pass().await;
        let now = h.now().await;
        assert!(now > latest);
        h.set_clock_back(STEP).await;
        latest = h.now().await;
        assert!(latest >= now);
        h.let_pass(STEP).await;
    }
}

pub async fn what_is_known_of_the_time_is_not_behind_it(h: &impl Harness) {
    let pool = h.pool(seats(1)).await;
    let bucket = pool.id.bucket();
    for _ in 0..50 {
        let before = pool.registry.now_in(bucket).await.expect("the time");
        let known = pool.registry.approximate_now_in(bucket).await.expect("the time");
        assert!(known >= before, "{known:?} is behind {before:?}");
        let after = pool.registry.now_in(bucket).await.expect("the time");
        assert!(known <= after + AHEAD_MAX, "{known:?} is ahead of {after:?}");
    }
}

pub async fn a_clock_that_is_set_back_frees_no_seat(h: &impl Harness) {
    let pool = h.pool(seats(1).brief()).await;
    let ann = pool.claim("ann").await.admitted();
    if !h.set_clock_back(STEP).await {
        return;
    }
    pool.claim("bob").await.full();
    let renewed = pool.heartbeat(&ann).await;
    assert!(renewed.expires >= ann.expires, "no renewal takes time away");
    assert_eq!(sweep_all(&*pool.registry).await, 0);
    let again = pool.claim("ann").naming(&ann).await.refreshed();
    assert!(again.expires >= ann.expires);
    assert_eq!(pool.holders().await, ["ann"]);
}

pub async fn a_clock_that_is_set_back_expires_nothing_when_it_has_caught_up(h: &impl Harness) {
    let pool = h.pool(seats(1).brief()).await;
    pool.claim("ann").await.admitted();
    if !h.set_clock_back(STEP).await {
        return;
    }
    h.let_pass(STEP).await;
    pool.claim("bob").await.full();
    h.let_pass(pool.ttl()).await;
    pool.claim("bob").await.admitted();
}

pub async fn a_pause_of_the_process_ends_no_session(h: &impl Harness) {
    let pool = h.pool(seats(1).brief()).await;
    let ann = pool.claim("ann").await.admitted();
    if !h.pause(STEP).await {
        return;
    }
    assert_eq!(sweep_all(&*pool.registry).await, 0);
    pool.claim("bob").await.full();
    let renewed = pool.heartbeat(&ann).await;
    assert_eq!(renewed.expires, h.now().await + pool.ttl());
}

pub async fn a_holder_that_is_silent_after_a_pause_loses_the_seat_after_one_ttl(h: &impl Harness) {
    let pool = h.pool(seats(1).brief()).await;
    pool.claim("ann").await.admitted();
    if !h.pause(STEP).await {
        return;
    }
    pool.claim("bob").await.full();
    h.let_pass(pool.ttl()).await;
    pool.claim("bob").await.admitted();
    assert_eq!(pool.holders().await, ["bob"]);
}
