//! Clauses on opening: a pool starts from the state in the ledger.

use seatkeeper_core::{
    Change, DENIAL_WINDOW, EndReason, Origin, Region, Session, SessionId, Span, Standing, Tier, Users,
};

use super::books::{events_of, sweep_all, waiting};
use super::harness::{Harness, Scene};
use super::plan::{capacity, seats};
use super::pool::{TestPool, admin, request_of, user};
use crate::{ClosedAt, Ended, Error, Heartbeat};

pub async fn a_pool_that_is_not_open_has_no_answer(h: &impl Harness) {
    let pool = h.pool_not_open(seats(1));
    let origin = request_of(&"ann".into(), "any");
    assert!(matches!(pool.claim("ann").await.failed(), Error::PoolNotOpen));
    let viewed = pool.registry.view(&pool.id, 1).await;
    assert!(matches!(viewed, Err(Error::PoolNotOpen)), "{viewed:?}");
    let ended = pool.registry.end_all(&pool.id, EndReason::Revoked, &origin).await;
    assert!(matches!(ended, Err(Error::PoolNotOpen)), "{ended:?}");
    let revised = pool.registry.revise(&pool.id, pool.terms(), &origin).await;
    assert!(matches!(revised, Err(Error::PoolNotOpen)), "{revised:?}");
    pool.open(0, Vec::new()).await;
    pool.claim("ann").await.admitted();
}

/// The pool may have been open meanwhile, and its events recorded.
pub async fn a_record_that_may_be_outdated_opens_no_pool(h: &impl Harness) {
    let pool = h.pool_not_open(seats(1));
    let registry = &pool.registry;
    let closed_at = registry.closed_at(&pool.id).await.expect("an answer").expect("the pool is closed");
    let terms = Some(pool.terms());
    let long_ago = ClosedAt { time: closed_at.time - Span::from_secs(31), ..closed_at };
    registry.open_if_recent(long_ago, &pool.id, 0, terms, Vec::new()).await.expect("an answer");
    assert!(matches!(pool.claim("ann").await.failed(), Error::PoolNotOpen));
    registry.open_if_recent(closed_at, &pool.id, 0, terms, Vec::new()).await.expect("a pool can be opened");
    pool.claim("ann").await.admitted();
}

pub async fn opening_an_open_pool_does_nothing(h: &impl Harness) {
    let pool = h.pool(seats(2)).await;
    let ann = pool.claim("ann").await.admitted();
    let bob = held_since_long(h, &pool, "bob", 1).await;
    pool.at_limit(9).open(40, vec![bob]).await;
    assert_eq!(pool.holders().await, ["ann"]);
    assert_eq!(pool.view().await.terms, Some(pool.terms()));
    assert_eq!(pool.claim("ann").await.resumed().session.id, ann.session.id);
    pool.claim("cid").await.admitted();
    let numbers: Vec<_> = events_of(&*pool.registry, &pool.id).await.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, [1, 2]);
}

pub async fn restored_sessions_get_one_full_ttl(h: &impl Harness) {
    let pool = h.pool_not_open(seats(1).brief());
    let ann = held_since_long(h, &pool, "ann", 1).await;
    let before = h.now().await;
    pool.open(1, vec![ann.clone()]).await;
    let restored = pool.session_by(&admin(), ann.id).await.expect("ann is back");
    assert!(restored.session.last_heartbeat >= before);
    let as_before = Session { last_heartbeat: restored.session.last_heartbeat, ..ann.clone() };
    assert_eq!(restored.session, as_before);
    assert_eq!(restored.expires, restored.session.last_heartbeat + pool.ttl());
    assert!(waiting(&*pool.registry).await.is_empty(), "nothing happened that is not on record");

    pool.claim("bob").await.full();
    h.let_pass(pool.ttl()).await;
    pool.claim("bob").await.admitted();
}

pub async fn restored_sessions_keep_a_ttl_longer_than_the_pools_until_the_next_renewal(h: &impl Harness) {
    let pool = h.pool_not_open(seats(1));
    let told = Span::from_millis(2 * pool.ttl().as_millis());
    let ann = Session { ttl: told, ..held_since_long(h, &pool, "ann", 1).await };
    pool.open(1, vec![ann.clone()]).await;
    let restored = pool.session_by(&admin(), ann.id).await.expect("ann is back");
    assert_eq!(restored.session.ttl, told, "the holder heartbeats by the TTL of the last answer");
    assert_eq!(restored.expires, restored.session.last_heartbeat + told);
    let renewed = pool.heartbeat_by(&user("ann"), ann.id).await;
    let Heartbeat::Renewed(renewed) = renewed else { panic!("{renewed:?}") };
    assert_eq!(renewed.ttl, pool.ttl());
}

pub async fn restored_sessions_that_have_no_heartbeats_keep_their_end(h: &impl Harness) {
    let pool = h.pool_not_open(capacity());
    let ann = held_since_long(h, &pool, "ann", 1).await;
    let ann = Session { ttl: Span::from_secs(7_200), ..ann };
    pool.open(1, vec![ann.clone()]).await;
    let restored = pool.session_by(&admin(), ann.id).await.expect("ann is back");
    assert_eq!(restored.session, ann);
    assert_eq!(restored.expires, ann.started + ann.ttl);
}

pub async fn what_was_over_before_the_pool_opened_ends_as_it_opens(h: &impl Harness) {
    for known in [true, false] {
        let pool = h.pool_not_open(capacity().called(if known { "known" } else { "unknown" }));
        let ann = held_since_long(h, &pool, "ann", 1).await;
        let ann = Session { ttl: Span::from_secs(3_599), ..ann };
        let terms = known.then(|| pool.terms());
        pool.registry.open(&pool.id, 1, terms, vec![ann.clone()]).await.expect("a pool can be opened");
        assert_eq!(pool.session_by(&admin(), ann.id).await, None);
        let events = events_of(&*pool.registry, &pool.id).await;
        let [event] = &events[..] else { panic!("expected one end on record: {events:?}") };
        let Change::Ended { reason, expires, .. } = event.change else { panic!("{event:?}") };
        assert_eq!((reason, expires), (EndReason::Expired, ann.started + ann.ttl));
    }
}

pub async fn restored_sessions_hold_their_seats(h: &impl Harness) {
    let pool = h.pool_not_open(seats(2));
    let ann = held_since_long(h, &pool, "ann", 1).await;
    let bob = held_since_long(h, &pool, "bob", 2).await;
    pool.open(2, vec![ann.clone(), bob.clone()]).await;
    pool.claim("cid").await.full();
    assert_eq!(pool.claim("ann").await.resumed().session.id, ann.id);
    let renewed = pool.heartbeat_by(&user("bob"), bob.id).await;
    assert!(matches!(renewed, Heartbeat::Renewed(_)), "{renewed:?}");
    let ended = pool.end_by(&user("bob"), bob.id, EndReason::Released).await;
    assert!(matches!(ended, Ended::Now { .. }), "{ended:?}");
    pool.claim("cid").await.admitted();
}

pub async fn the_numbers_of_events_go_on_where_the_record_ended(h: &impl Harness) {
    let pool = h.pool_not_open(seats(2));
    pool.open(41, Vec::new()).await;
    pool.claim("ann").await.admitted();
    pool.claim("bob").await.admitted();
    let numbers: Vec<_> =
        events_of(&*pool.registry, &pool.id).await.iter().map(|event| (event.seq, event.live)).collect();
    assert_eq!(numbers, [(42, 1), (43, 2)]);
}

pub async fn what_the_entitlement_ended_meanwhile_ends_as_the_pool_opens(h: &impl Harness) {
    let now = h.now().await;
    let open = h.pool_not_open(seats(1));
    let changes = [
        ("closed", open.after(|terms| terms.standing = Standing::Closed), EndReason::EntitlementEnded),
        ("ended", open.after(|terms| terms.ends_at = Some(now)), EndReason::Expired),
    ];
    for (name, changed, why) in changes {
        let pool = h.pool_not_open(seats(1).called(name)).after(|terms| *terms = changed.terms());
        let ann = held_since_long(h, &pool, "ann", 1).await;
        pool.open(1, vec![ann.clone()]).await;
        assert_eq!(pool.heartbeat_by(&user("ann"), ann.id).await, Heartbeat::Missing);
        assert_eq!(pool.view().await.live, 0);
        let events = events_of(&*pool.registry, &pool.id).await;
        let [event] = &events[..] else { panic!("expected one end on record: {events:?}") };
        assert_eq!((event.seq, &event.origin), (2, &Origin::SYSTEM));
        assert!(matches!(event.change, Change::Ended { reason, .. } if reason == why), "{event:?}");
    }
}

pub async fn a_pool_whose_events_wait_for_the_ledger_stays_open(h: &impl Harness) {
    let pool = h.pool(seats(1)).await;
    let ann = pool.claim("ann").await.admitted();
    pool.release(&ann).await;
    // Long enough for a registry to close an empty pool with all events in the ledger.
    h.let_pass(DENIAL_WINDOW).await;
    h.let_pass(h.ttl()).await;
    sweep_all(&*pool.registry).await;
    pool.claim("bob").await.admitted();
}

pub async fn a_restored_session_is_its_users(h: &impl Harness) {
    let pool = h.pool_not_open(seats(1));
    let ann = held_since_long(h, &pool, "ann", 1).await;
    pool.open(1, vec![ann.clone()]).await;
    assert_eq!(pool.heartbeat_by(&user("eve"), ann.id).await, Heartbeat::Missing);
    assert!(pool.session_by(&user("ann"), ann.id).await.is_some());
}

/// Returns a session as read from the ledger, started an hour ago and without later heartbeats.
pub(super) async fn held_since_long(h: &impl Harness, pool: &TestPool, holder: &str, number: u64) -> Session {
    let started = h.now().await - Span::from_secs(3_600);
    Session {
        id: SessionId::mint(started, pool.bucket(), Region::default(), number),
        holder: holder.into(),
        users: Users::one(holder.into()),
        started,
        last_heartbeat: started,
        ttl: pool.ttl(),
        tier: Tier(1),
    }
}
