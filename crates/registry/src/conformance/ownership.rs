//! Clauses on ownership: another caller's session looks missing.

use seatkeeper_core::EndReason;

use super::books::events_of;
use super::harness::{Harness, Scene};
use super::plan::seats;
use super::pool::{admin, owner, service_abroad, strangers, user};
use crate::{Ended, Heartbeat};

pub async fn a_stranger_finds_every_session_missing(h: &impl Harness) {
    let pool = h.pool(seats(1)).await;
    let ann = pool.claim("ann").await.admitted();
    h.let_a_moment_pass().await;
    for stranger in strangers() {
        assert_eq!(pool.heartbeat_by(&stranger, ann.session.id).await, Heartbeat::Missing);
        assert_eq!(pool.end_by(&stranger, ann.session.id, EndReason::Released).await, Ended::Missing);
        assert_eq!(pool.session_by(&stranger, ann.session.id).await, None);
    }
    let untouched = pool.session_by(&owner(&ann), ann.session.id).await.expect("ann is in");
    assert_eq!(untouched.session, ann.session);
    assert_eq!(events_of(&*pool.registry, &pool.id).await.len(), 1);
}

pub async fn a_stranger_finds_nothing_out_about_what_is_over(h: &impl Harness) {
    let pool = h.pool(seats(1).brief()).await;
    let ann = pool.claim("ann").await.admitted();
    h.let_pass(pool.ttl()).await;
    for stranger in strangers() {
        assert_eq!(pool.heartbeat_by(&stranger, ann.session.id).await, Heartbeat::Missing);
        assert_eq!(pool.end_by(&stranger, ann.session.id, EndReason::Released).await, Ended::Missing);
    }
    let told = pool.heartbeat_by(&owner(&ann), ann.session.id).await;
    assert!(matches!(told, Heartbeat::Over { .. }), "{told:?}");
}

pub async fn an_admin_reaches_every_session_of_its_tenant(h: &impl Harness) {
    let pool = h.pool(seats(1)).await;
    let ann = pool.claim("ann").await.admitted();
    assert!(pool.session_by(&admin(), ann.session.id).await.is_some());
    let renewed = pool.heartbeat_by(&admin(), ann.session.id).await;
    assert!(matches!(renewed, Heartbeat::Renewed(_)), "{renewed:?}");
    let ended = pool.end_by(&admin(), ann.session.id, EndReason::Revoked).await;
    assert!(matches!(ended, Ended::Now { reason: EndReason::Revoked, .. }), "{ended:?}");
}

pub async fn users_who_share_a_session_may_all_renew_it_and_the_last_ends_it(h: &impl Harness) {
    let pool = h.pool(seats(1)).await;
    for last in ["ann", "bob"] {
        let session = pool.claim("machine").by("ann").await.admitted().session.id;
        assert_eq!(pool.heartbeat_by(&user("bob"), session).await, Heartbeat::Missing);
        pool.claim("machine").by("bob").await.resumed();
        for name in ["ann", "bob"] {
            let renewed = pool.heartbeat_by(&user(name), session).await;
            assert!(matches!(renewed, Heartbeat::Renewed(_)), "{name}: {renewed:?}");
        }
        let first = if last == "ann" { "bob" } else { "ann" };
        assert_eq!(pool.end_by(&user(first), session, EndReason::Released).await, Ended::Left);
        assert_eq!(pool.heartbeat_by(&user(first), session).await, Heartbeat::Missing, "{first} is out");
        let ended = pool.end_by(&user(last), session, EndReason::Released).await;
        assert!(matches!(ended, Ended::Now { .. }), "{last}: {ended:?}");
    }
}

pub async fn a_service_of_another_tenant_reaches_what_it_acquired(h: &impl Harness) {
    let pool = h.pool(seats(2)).await;
    let (service, name) = service_abroad();
    let acquired = pool.claim("machine").by(name.as_str()).await.admitted().session.id;
    let anothers = pool.claim("desk").by("robot").await.admitted().session.id;
    assert!(pool.session_by(&service, acquired).await.is_some());
    assert!(pool.session_by(&service, anothers).await.is_none());
    assert_eq!(pool.end_by(&service, anothers, EndReason::Released).await, Ended::Missing);
    let ended = pool.end_by(&service, acquired, EndReason::Released).await;
    assert!(matches!(ended, Ended::Now { reason: EndReason::Released, .. }), "{ended:?}");
}
