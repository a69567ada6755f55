//! Clauses on ends: a session ends once, for one reason.

use seatkeeper_core::{Bucket, Change, EndReason, Region, SessionId};

use super::books::events_of;
use super::harness::{Harness, Scene};
use super::plan::seats;
use super::pool::{admin, owner};
use crate::{Ended, Heartbeat};

pub async fn a_session_ends_once(h: &impl Harness) {
    let pool = h.pool(seats(1)).await;
    let ann = pool.claim("ann").await.admitted();
    assert_eq!(pool.release(&ann).await, EndReason::Released);
    let again = pool.end_by(&owner(&ann), ann.session.id, EndReason::Released).await;
    assert_eq!(again, Ended::Missing);
}

pub async fn nothing_brings_an_ended_session_back(h: &impl Harness) {
    let pool = h.pool(seats(1)).await;
    let ann = pool.claim("ann").await.admitted();
    pool.release(&ann).await;
    assert_eq!(pool.heartbeat_by(&owner(&ann), ann.session.id).await, Heartbeat::Missing);
    assert!(pool.session_by(&owner(&ann), ann.session.id).await.is_none());
    let second = pool.claim("ann").naming(&ann).await.admitted();
    assert_ne!(second.session.id, ann.session.id);
}

pub async fn each_reason_that_is_asked_for_is_the_reason_on_record(h: &impl Harness) {
    let pool = h.pool(seats(1)).await;
    for asked in [EndReason::Released, EndReason::Revoked, EndReason::GroupContent] {
        let ann = pool.claim("ann").await.admitted();
        let ended = pool.end_by(&admin(), ann.session.id, asked).await;
        assert!(matches!(ended, Ended::Now { reason, .. } if reason == asked), "{ended:?}");
        let events = events_of(&*pool.registry, &pool.id).await;
        let last = events.last().expect("an end is on record");
        assert!(matches!(last.change, Change::Ended { reason, .. } if reason == asked), "{last:?}");
    }
}

pub async fn a_pool_can_be_emptied(h: &impl Harness) {
    let pool = h.pool(seats(3)).await;
    let ann = pool.claim("ann").await.admitted();
    pool.claim("bob").await.admitted();
    assert_eq!(pool.end_all(EndReason::Revoked).await.count, 2);
    assert_eq!(pool.view().await.live, 0);
    assert_eq!(pool.heartbeat_by(&owner(&ann), ann.session.id).await, Heartbeat::Missing);
    let events = events_of(&*pool.registry, &pool.id).await;
    let revoked = events
        .iter()
        .filter(|event| matches!(event.change, Change::Ended { reason, .. } if reason == EndReason::Revoked));
    assert_eq!(revoked.count(), 2);
}

pub async fn an_empty_pool_has_nothing_to_end(h: &impl Harness) {
    let pool = h.pool(seats(1)).await;
    assert_eq!(pool.end_all(EndReason::Revoked).await.count, 0);
    assert!(events_of(&*pool.registry, &pool.id).await.is_empty());
}

pub async fn a_session_that_never_was_is_missing(h: &impl Harness) {
    h.pool(seats(1)).await.claim("ann").await.admitted();
    let pool = h.pool_not_open(seats(1));
    for bucket in Bucket::all().take(3).chain([pool.bucket()]) {
        let nowhere = SessionId::mint(h.now().await, bucket, Region::default(), 1);
        assert_eq!(pool.heartbeat_by(&admin(), nowhere).await, Heartbeat::Missing);
        assert_eq!(pool.end_by(&admin(), nowhere, EndReason::Revoked).await, Ended::Missing);
        assert_eq!(pool.session_by(&admin(), nowhere).await, None);
    }
}
