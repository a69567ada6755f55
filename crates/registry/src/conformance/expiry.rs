//! Clauses on expiry: a session is over at its expiry, swept or not. Clauses of this module never sweep.

use seatkeeper_core::{Denial, EndReason, RegistryTime, SessionId, Span};

use super::harness::{Harness, Scene};
use super::plan::{TTL_LONG, devices, group, seats};
use super::pool::{TestPool, admin, owner, user};
use crate::{Heartbeat, Live, Liveness};

pub async fn a_heartbeat_keeps_a_session_alive_past_its_first_ttl(h: &impl Harness) {
    let pool = h.pool(seats(1).brief()).await;
    let ann = pool.claim("ann").await.admitted();
    for _ in 0..4 {
        let_most_of_a_ttl_pass(h, &pool).await;
        let renewed = pool.heartbeat(&ann).await;
        assert_eq!(renewed.expires, renewed.last_heartbeat + pool.ttl());
        assert_eq!(renewed.expires_in, pool.ttl());
        pool.claim("bob").await.full();
    }
}

pub async fn a_heartbeat_shortens_the_ttl_only_of_a_holder_that_is_told_so(h: &impl Harness) {
    let short = Span::from_secs(60);
    for (plan, kept) in [(seats(2), short), (devices(2), TTL_LONG), (group(2), TTL_LONG)] {
        let pool = h.pool(plan).await;
        let ann = pool.claim("ann").await.admitted();
        let shortened = pool.after(|terms| terms.ttl = short);
        shortened.revise(shortened.terms()).await;
        let renewed = pool.heartbeat(&ann).await;
        assert_eq!(renewed.ttl, kept, "{:?}", pool.id);
        assert_eq!(renewed.expires, renewed.last_heartbeat + kept);
        assert_eq!(ttls_on_the_way_to_the_record(&pool, ann.session.id).await, [kept], "{:?}", pool.id);
        let bob = shortened.claim("bob").await.admitted();
        assert_eq!(bob.session.ttl, short, "the answer to a claim tells the interval");
        assert_eq!(pool.heartbeat(&bob).await.ttl, short);
    }
}

pub async fn a_session_with_several_users_keeps_a_longer_ttl_until_one_is_left(h: &impl Harness) {
    let pool = h.pool(seats(1)).await;
    let ann = pool.claim("machine").by("ann").await.admitted();
    let shortened = pool.of_same_version(|terms| terms.ttl = Span::from_secs(60));
    let bob = shortened.claim("machine").by("bob").await.resumed();
    assert_eq!(bob.session.ttl, pool.ttl(), "ann heartbeats by the TTL of her last answer");
    let named = shortened.claim("machine").by("bob").naming(&ann).await.refreshed();
    assert_eq!(named.session.ttl, pool.ttl());
    for name in ["bob", "ann"] {
        let renewed = heartbeat_of(&pool, name, &ann).await;
        assert_eq!(renewed.ttl, pool.ttl(), "{name}");
    }
    assert_eq!(ttls_on_the_way_to_the_record(&pool, ann.session.id).await, [pool.ttl()]);
    pool.end_by(&user("bob"), ann.session.id, EndReason::Released).await;
    let renewed = heartbeat_of(&pool, "ann", &ann).await;
    assert_eq!(renewed.ttl, shortened.ttl(), "ann is alone, and the answer tells her the interval");
    let alone = shortened.claim("machine").by("ann").await.resumed();
    assert_eq!(alone.session.ttl, shortened.ttl());
}

/// Sends a heartbeat of one of a session's users.
async fn heartbeat_of(pool: &TestPool, name: &str, session: &Live) -> Liveness {
    let heard = pool.heartbeat_by(&user(name), session.session.id).await;
    let Heartbeat::Renewed(renewed) = heard else { panic!("expected a live session: {heard:?}") };
    renewed
}

/// Returns the TTLs of a session's heartbeats, as read for the record.
async fn ttls_on_the_way_to_the_record(pool: &TestPool, session: SessionId) -> Vec<Span> {
    let renewed = pool.registry.renewed_since(pool.bucket(), RegistryTime::default()).await;
    let renewed = renewed.expect("a bucket knows its renewals");
    renewed.iter().filter(|heartbeat| heartbeat.session == session).map(|heartbeat| heartbeat.ttl).collect()
}

pub async fn a_heartbeat_after_the_expiry_is_told_so_and_brings_nothing_back(h: &impl Harness) {
    let pool = h.pool(seats(1).brief()).await;
    let ann = pool.claim("ann").await.admitted();
    h.let_pass(pool.ttl()).await;
    let heard = pool.heartbeat_by(&owner(&ann), ann.session.id).await;
    let Heartbeat::Over { last_heartbeat, .. } = heard else { panic!("expected it to be over: {heard:?}") };
    assert_eq!(last_heartbeat, ann.session.last_heartbeat);
    assert_eq!(pool.heartbeat_by(&owner(&ann), ann.session.id).await, Heartbeat::Missing);
    pool.claim("bob").await.admitted();
}

pub async fn a_silent_holders_seat_comes_free_while_the_others_heartbeat(h: &impl Harness) {
    let pool = h.pool(seats(3).brief()).await;
    let silent = pool.claim("ann").await.admitted();
    let others = [pool.claim("bob").await.admitted(), pool.claim("cid").await.admitted()];
    let_most_of_a_ttl_pass(h, &pool).await;
    for other in &others {
        pool.heartbeat(other).await;
    }
    pool.claim("dan").await.full();
    h.let_pass(silent.expires.since(h.now().await)).await;
    pool.claim("dan").await.admitted();
    assert_eq!(pool.holders().await, ["bob", "cid", "dan"]);
}

pub async fn a_session_that_is_over_is_not_shown(h: &impl Harness) {
    let pool = h.pool(seats(2).brief()).await;
    let ann = pool.claim("ann").await.admitted();
    assert!(pool.session_by(&owner(&ann), ann.session.id).await.is_some());
    h.let_pass(pool.ttl()).await;
    assert!(pool.session_by(&owner(&ann), ann.session.id).await.is_none());
    assert!(pool.session_by(&admin(), ann.session.id).await.is_none());
}

pub async fn a_view_shows_nobody_who_is_over(h: &impl Harness) {
    let pool = h.pool(seats(2).brief()).await;
    pool.claim("ann").await.admitted();
    h.let_pass(pool.ttl()).await;
    let view = pool.view().await;
    assert_eq!((view.live, view.sessions), (0, Vec::new()));
}

pub async fn naming_a_session_that_is_over_does_not_refresh_it(h: &impl Harness) {
    let pool = h.pool(seats(1).brief()).await;
    let first = pool.claim("ann").await.admitted();
    h.let_pass(pool.ttl()).await;
    let second = pool.claim("ann").naming(&first).await.admitted();
    assert_ne!(second.session.id, first.session.id);
}

pub async fn the_end_of_the_entitlement_comes_before_the_ttl(h: &impl Harness) {
    let ends_at = h.now().await + h.ttl();
    let pool = h.pool(seats(1).ending_at(ends_at)).await;
    let ann = pool.claim("ann").await.admitted();
    assert_eq!(ann.expires, ends_at);
    h.let_pass(ends_at.since(h.now().await)).await;
    assert!(pool.session_by(&owner(&ann), ann.session.id).await.is_none());
    assert_eq!(pool.claim("ann").naming(&ann).await.denied(), Denial::EntitlementOver { ended_at: ends_at });
    assert_eq!(pool.view().await.live, 0);
}

/// More sessions than one step of a script ends.
const MANY: u32 = 280;

pub async fn newer_terms_revive_nobody_of_a_large_pool(h: &impl Harness) {
    let pool = h.pool(seats(MANY)).await;
    for number in 0..MANY {
        pool.claim(&format!("machine-{number}")).await.admitted();
    }
    let ends_at = h.now().await + h.ttl();
    let ending = pool.after(|terms| terms.ends_at = Some(ends_at));
    assert_eq!(ending.revise(ending.terms()).await.count, 0);
    h.let_pass(ends_at.since(h.now().await)).await;
    let renewed = ending.after(|terms| terms.ends_at = None);
    assert_eq!(renewed.revise(renewed.terms()).await.count, MANY as usize);
    assert_eq!(pool.view().await.live, 0);
}

pub async fn what_was_over_ends_as_expired_whatever_was_asked(h: &impl Harness) {
    let pool = h.pool(seats(1).brief()).await;
    let ann = pool.claim("ann").await.admitted();
    h.let_pass(pool.ttl()).await;
    assert_eq!(pool.release(&ann).await, EndReason::Expired);
}

pub async fn what_was_over_when_a_device_came_back_is_not_superseded(h: &impl Harness) {
    let pool = h.pool(devices(1).brief()).await;
    let first: Live = pool.claim("tv").await.admitted();
    h.let_pass(pool.ttl()).await;
    let second = pool.claim("tv").await.admitted();
    assert_ne!(first.session.id, second.session.id);
}

pub(super) async fn let_most_of_a_ttl_pass(h: &impl Harness, pool: &TestPool) {
    h.let_pass(Span::from_millis(pool.ttl().as_millis() * 2 / 3)).await;
}
