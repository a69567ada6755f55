//! Clauses on a holder with a session: the holder keeps its seat, and never takes a second.

use seatkeeper_core::{EndReason, Tier};

use super::harness::{Harness, Scene};
use super::plan::{capacity, devices, seats};
use super::pool::user;
use crate::Ended;

pub async fn one_machine_takes_one_seat(h: &impl Harness) {
    let pool = h.pool(seats(2)).await;
    let first = pool.claim("ann").await.admitted();
    h.let_a_moment_pass().await;
    let again = pool.claim("ann").await.resumed();
    assert_eq!((again.session.id, again.session.started), (first.session.id, first.session.started));
    assert!(again.expires > first.expires, "a resumed session is renewed");
    assert_eq!(pool.view().await.live, 1);
}

pub async fn another_user_of_a_machine_shares_its_session(h: &impl Harness) {
    let pool = h.pool(seats(1)).await;
    let first = pool.claim("machine").by("ann").await.admitted();
    assert!(pool.session_by(&user("bob"), first.session.id).await.is_none());
    let shared = pool.claim("machine").by("bob").await.resumed();
    assert_eq!(shared.session.id, first.session.id);
    assert!(pool.session_by(&user("ann"), first.session.id).await.is_some());
    assert!(pool.session_by(&user("bob"), first.session.id).await.is_some());
}

pub async fn a_session_that_is_named_by_its_holder_is_refreshed(h: &impl Harness) {
    for plan in [seats(1), devices(1), capacity()] {
        let pool = h.pool(plan).await;
        let first = pool.claim("ann").await.admitted();
        h.let_a_moment_pass().await;
        let again = pool.claim("ann").of_tier(3).naming(&first).await.refreshed();
        assert_eq!(again.session.id, first.session.id);
        assert!(again.expires > first.expires);
    }
}

pub async fn a_session_shown_by_another_holder_counts_for_nothing(h: &impl Harness) {
    let pool = h.pool(seats(1)).await;
    let ann = pool.claim("ann").await.admitted();
    h.let_a_moment_pass().await;
    pool.claim("eve").naming(&ann).await.full();
    let still = pool.session_by(&user("ann"), ann.session.id).await.expect("ann is in");
    assert_eq!(still.session, ann.session);
}

pub async fn a_device_is_refreshed_on_another_network(h: &impl Harness) {
    let pool = h.pool(devices(1)).await;
    let at_home = pool.claim("tv-home").await.admitted();
    h.let_a_moment_pass().await;
    let on_the_road = pool.claim("tv-road").naming(&at_home).await.refreshed();
    assert_eq!(on_the_road.session.id, at_home.session.id);
    assert!(on_the_road.session.last_heartbeat > at_home.session.last_heartbeat);
    pool.claim("phone-road").naming(&at_home).await.admitted_ending(&[(&at_home, EndReason::Evicted)]);
}

pub async fn a_copied_device_identity_throws_the_other_out(h: &impl Harness) {
    let pool = h.pool(devices(2)).await;
    let own = pool.claim("tv").await.admitted();
    let copy = pool.claim("tv").await.admitted_ending(&[(&own, EndReason::Superseded)]);
    pool.claim("tv").naming(&own).await.admitted_ending(&[(&copy, EndReason::Superseded)]);
    assert_eq!(pool.view().await.live, 1);
}

pub async fn a_higher_tier_replaces_a_lower_one(h: &impl Harness) {
    let pool = h.pool(capacity()).await;
    let first = pool.claim("ann").of_tier(1).await.admitted();
    let second = pool.claim("ann").of_tier(3).await.admitted_ending(&[(&first, EndReason::Upgraded)]);
    assert_eq!(second.session.tier, Tier(3));
    assert_eq!(pool.view().await.live, 1);
}

pub async fn the_same_or_a_lower_tier_changes_nothing(h: &impl Harness) {
    let pool = h.pool(capacity()).await;
    let first = pool.claim("ann").of_tier(2).await.admitted();
    h.let_a_moment_pass().await;
    for tier in [2, 1] {
        let standing = pool.claim("ann").of_tier(tier).await.existing();
        assert_eq!(standing.session, first.session);
    }
}

pub async fn a_session_that_stands_stays_the_one_users_who_acquired_it(h: &impl Harness) {
    let pool = h.pool(capacity()).await;
    let standing = pool.claim("ann").by("robot").of_tier(2).await.admitted().session.id;
    assert_eq!(pool.claim("ann").by("eve").of_tier(2).await.existing().session.id, standing);
    assert!(pool.session_by(&user("eve"), standing).await.is_none());
    assert_eq!(pool.end_by(&user("eve"), standing, EndReason::Released).await, Ended::Missing);
    assert!(pool.session_by(&user("robot"), standing).await.is_some());
}

pub async fn a_holder_is_never_told_that_the_pool_is_full(h: &impl Harness) {
    let pool = h.pool(seats(2)).await;
    let ann = pool.claim("ann").await.admitted();
    let bob = pool.claim("bob").await.admitted();
    for limit in [2, 1, 0] {
        let pool = pool.at_limit(limit);
        assert_eq!(pool.claim("ann").await.resumed().session.id, ann.session.id);
        assert_eq!(pool.claim("bob").naming(&bob).await.refreshed().session.id, bob.session.id);
    }
}
