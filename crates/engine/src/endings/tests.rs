//! Ends of sessions reach every listener of the session, and no others.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use seatkeeper_core::{
    Bucket, Change, EndReason, Event, Origin, PoolId, PoolKind, Region, RegistryTime, Seats, SessionId, Tier,
    UserId,
};

use super::{Endings, LISTENERS_PER_SESSION_MAX};

fn id(number: u64) -> SessionId {
    SessionId::mint(RegistryTime::default(), Bucket::new(0).unwrap(), Region::default(), number)
}

fn end_of(session: SessionId) -> Event {
    let now = RegistryTime::default();
    Event {
        pool: PoolId::new(PoolKind::Subscriber, "acme".into(), "ann"),
        seq: 1,
        epoch: 1,
        at: now,
        live: 0,
        limit: Seats(1),
        version: 1,
        origin: Origin::SYSTEM,
        change: Change::Ended {
            session,
            holder: "tv".into(),
            tier: Tier(0),
            reason: EndReason::Revoked,
            last_heartbeat: now,
            expires: now,
        },
    }
}

fn hears(listener: &mut super::Listener) -> bool {
    let paced = tokio::time::Instant::now() + Duration::from_secs(60);
    listener.heard(paced).now_or_never().is_some()
}

#[tokio::test]
async fn all_who_listen_for_a_session_hear_of_its_end_and_nobody_else() {
    let endings = Arc::new(Endings::default());
    let listen = |number| endings.listen(id(number), None, 9).unwrap();
    let (mut one, mut two, mut other) = (listen(1), listen(1), listen(2));
    endings.tell(&[end_of(id(1)), end_of(id(3))]);
    assert!(hears(&mut one));
    assert!(hears(&mut two), "told before it waited");
    assert!(!hears(&mut other));
}

#[tokio::test]
async fn who_listens_in_a_bucket_hears_of_a_rumour_there_once_and_not_too_soon() {
    let endings = Arc::new(Endings::default());
    let mut listener = endings.listen(id(1), None, 9).unwrap();
    let paced = || tokio::time::Instant::now() + Duration::from_millis(20);
    let long = Duration::from_millis(100);
    endings.tell_of_buckets(&HashSet::from([Bucket::new(1).unwrap()]));
    assert!(tokio::time::timeout(long, listener.heard(paced())).await.is_err());
    endings.tell_of_buckets(&HashSet::from([Bucket::new(0).unwrap(), Bucket::new(1).unwrap()]));
    assert!(listener.heard(paced()).now_or_never().is_none(), "too soon");
    listener.heard(paced()).await;
    assert!(tokio::time::timeout(long, listener.heard(paced())).await.is_err());
}

#[tokio::test]
async fn the_listeners_of_a_group_hear_of_the_ends_of_its_members_and_of_no_other_group() {
    let endings = Arc::new(Endings::default());
    let listen = |number| endings.listen(id(number), None, 9).unwrap().with_members(Bucket::new(5).unwrap());
    let (mut group, mut other) = (listen(1), listen(2));
    let pool = PoolId::new(PoolKind::Group, "acme".into(), id(1).to_string());
    endings.tell(&[Event { pool, ..end_of(id(7)) }]);
    assert!(hears(&mut group));
    assert!(!hears(&mut other));
    endings.tell_of_buckets(&HashSet::from([Bucket::new(5).unwrap()]));
    group.heard(tokio::time::Instant::now()).await;
    other.heard(tokio::time::Instant::now()).await;
}

#[tokio::test]
async fn the_listeners_of_a_session_hear_that_a_user_has_left() {
    let endings = Arc::new(Endings::default());
    let (mut left, mut other) =
        (endings.listen(id(1), None, 9).unwrap(), endings.listen(id(2), None, 9).unwrap());
    endings.tell_of_session(id(1));
    assert!(hears(&mut left));
    assert!(!hears(&mut other));
}

#[test]
fn there_are_only_so_many_listeners_and_none_is_left_behind() {
    let endings = Arc::new(Endings::default());
    let first = endings.listen(id(1), None, 2).unwrap();
    let again = endings.listen(id(1), None, 2).unwrap();
    assert!(endings.listen(id(1), None, 2).is_none());
    drop(first);
    let other = endings.listen(id(2), None, 2).unwrap();
    assert_eq!(endings.0.lock().by_session.len(), 2);
    drop((again, other));
    assert!(endings.0.lock().by_session.is_empty());
    assert!(endings.listen(id(2), None, 1).is_some());
}

#[test]
fn one_session_has_only_so_many_listeners() {
    let endings = Arc::new(Endings::default());
    let mut held: Vec<_> =
        (0..LISTENERS_PER_SESSION_MAX).map(|_| endings.listen(id(1), None, 99).unwrap()).collect();
    assert!(endings.listen(id(1), None, 99).is_none());
    assert!(endings.listen(id(2), None, 99).is_some());
    held.pop();
    assert!(endings.listen(id(1), None, 99).is_some());
}

#[test]
fn a_user_takes_no_more_than_a_share_of_the_listeners_of_a_session() {
    let endings = Arc::new(Endings::default());
    let (ann, guest) = (UserId::new("ann"), UserId::new("guest"));
    let first = endings.listen(id(1), Some((&guest, 2)), 99).unwrap();
    let _second = endings.listen(id(1), Some((&guest, 2)), 99).unwrap();
    assert!(endings.listen(id(1), Some((&guest, 2)), 99).is_none());
    assert!(endings.listen(id(1), Some((&ann, 2)), 99).is_some());
    assert!(endings.listen(id(2), Some((&guest, 2)), 99).is_some());
    drop(first);
    assert!(endings.listen(id(1), Some((&guest, 2)), 99).is_some());
}
