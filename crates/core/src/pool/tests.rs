//! Tests of the indexes of a pool.

use proptest::prelude::*;

use super::Pool;
use super::few::FEW_MAX;
use super::sessions::Sessions;
use crate::{Bucket, Region, RegistryTime, Seats, Session, SessionId, Span, Standing, Terms, Tier, Users};

const TTLS: [Span; 3] = [Span::from_millis(5), Span::from_millis(10), Span::from_millis(15)];

fn id(number: u64) -> SessionId {
    SessionId::mint(RegistryTime::default(), Bucket::new(0).unwrap(), Region::default(), number)
}

fn session(number: u64, started: u64, heartbeat: u64, ttl: Span) -> Session {
    Session {
        id: id(number),
        holder: format!("holder {number}").as_str().into(),
        users: Users::one("ann".into()),
        started: RegistryTime::from_millis(started),
        last_heartbeat: RegistryTime::from_millis(heartbeat),
        ttl,
        tier: Tier(0),
    }
}

/// Asserts the invariants of a pool.
fn assert_sound(pool: &Pool) {
    pool.sessions().assert_sound();
    assert_eq!(pool.iter().count(), pool.live() as usize);
    for session in pool.iter() {
        assert_eq!(pool.get(session.id), Some(session));
        assert_eq!(pool.held_by(&session.holder), Some(session));
    }
    let order: Vec<_> = pool.stalest_first().collect();
    assert_eq!(order.len(), pool.live() as usize);
    assert!(order.is_sorted_by_key(|session| session.rank()));
    assert_eq!(pool.stalest(), order.first().copied());
}

#[test]
fn a_pool_of_one_takes_few_bytes() {
    assert_eq!((size_of::<Pool>(), size_of::<Session>()), (112, 72));
}

#[derive(Clone, Debug)]
enum Op {
    Insert { started: u64, heartbeat: u64, ttl: usize },
    Remove(u64),
    Renew { number: u64, ttl: usize, now: u64 },
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        (0_u64..20, 0_u64..20, 0..TTLS.len()).prop_map(|(started, heartbeat, ttl)| Op::Insert {
            started,
            heartbeat,
            ttl
        }),
        (0_u64..40).prop_map(Op::Remove),
        (0_u64..40, 0..TTLS.len(), 0_u64..40).prop_map(|(number, ttl, now)| Op::Renew { number, ttl, now }),
    ];
    proptest::collection::vec(op, 0..60)
}

proptest! {
    #[test]
    fn the_indexes_agree_whatever_happens(ops in ops()) {
        let mut pool = Pool::new(None);
        for (number, op) in (0..).zip(ops) {
            match op {
                Op::Insert { started, heartbeat, ttl } => {
                    pool.insert(session(number, started, heartbeat, TTLS[ttl]));
                }
                Op::Remove(number) => {
                    let known = pool.get(id(number)).cloned();
                    prop_assert_eq!(pool.remove(id(number)), known);
                    prop_assert_eq!(pool.get(id(number)), None);
                }
                Op::Renew { number, ttl, now } => {
                    pool.renew(id(number), TTLS[ttl], RegistryTime::from_millis(now), None);
                }
            }
            assert_sound(&pool);
        }
    }
}

#[test]
fn a_session_that_comes_late_still_finds_the_place_of_its_rank() {
    let mut pool = Pool::new(None);
    for (number, heartbeat) in [(1, 30), (2, 10), (3, 20), (4, 10)] {
        pool.insert(session(number, 0, heartbeat, TTLS[0]));
    }
    let order: Vec<_> = pool.iter().map(|session| session.id).collect();
    assert_eq!(order, [id(2), id(4), id(3), id(1)]);
    assert_eq!(pool.stalest().map(|session| session.id), Some(id(2)));
    assert_sound(&pool);
}

#[test]
fn a_user_who_leaves_moves_no_session() {
    for count in [2, 3 * FEW_MAX as u64] {
        let mut pool = Pool::new(None);
        for number in 0..count {
            pool.insert(session(number, 0, number, TTLS[0]));
        }
        pool.renew(id(1), TTLS[0], RegistryTime::from_millis(1), Some(&"bob".into()));
        let order = |pool: &Pool| pool.stalest_first().map(|session| session.id).collect::<Vec<_>>();
        let before = order(&pool);
        assert!(pool.leave(id(1), &"ann".into()) && !pool.leave(id(1), &"bob".into()));
        assert_eq!(pool.get(id(1)).map(|session| session.users.clone()), Some(Users::one("bob".into())));
        assert_eq!(order(&pool), before);
        assert_sound(&pool);
    }
}

#[test]
fn renewed_since_leaves_out_those_renewed_at_that_very_time() {
    let mut pool = Pool::new(None);
    for (number, heartbeat, ttl) in [(1, 10, 0), (2, 11, 0), (3, 12, 1), (4, 9, 1)] {
        pool.insert(session(number, 0, heartbeat, TTLS[ttl]));
    }
    let mut renewed: Vec<_> =
        pool.renewed_since(RegistryTime::from_millis(10)).map(|session| session.id).collect();
    renewed.sort_unstable();
    assert_eq!(renewed, [id(2), id(3)]);
}

#[test]
fn the_room_to_come_is_that_of_as_many_ends_as_it_takes() {
    let mut pool = Pool::new(None);
    for (number, heartbeat, ttl) in [(1, 0, 0), (2, 1, 0), (3, 0, 1), (4, 0, 2)] {
        pool.insert(session(number, 0, heartbeat, TTLS[ttl]));
    }
    let waits: Vec<_> = (0..=5).map(|limit| pool.below_limit_at(Seats(limit))).collect();
    let at = |millis| Some(RegistryTime::from_millis(millis));
    assert_eq!(waits, [None, at(15), at(10), at(6), at(5), None]);
}

#[test]
fn nobody_is_over_before_the_end_of_time_without_a_ttl_or_an_end_that_came() {
    let mut pool = Pool::new(None);
    pool.insert(session(1, 0, u64::MAX, TTLS[0]));
    pool.insert(session(2, 0, 100, TTLS[0]));
    assert_eq!(pool.over(RegistryTime::from_millis(104)), []);
    assert_eq!(pool.over(RegistryTime::from_millis(105)), [id(2)]);
}

#[test]
fn all_are_over_at_the_end_of_the_entitlement() {
    let ends_at = RegistryTime::from_millis(50);
    let mut pool = Pool::new(Some(Terms {
        version: 1,
        limit: Seats(9),
        ttl: TTLS[0],
        ends_at: Some(ends_at),
        standing: Standing::Open,
    }));
    for number in 0..3 {
        pool.insert(session(number, 0, 49, TTLS[number as usize]));
    }
    assert_eq!(pool.over(RegistryTime::from_millis(49)), []);
    assert_eq!(pool.over(ends_at).len(), 3);
    assert_eq!(pool.next_expiry(), Some(ends_at));
}

#[test]
fn a_pool_that_outgrew_its_index_and_shrank_again_still_finds_everyone() {
    let mut pool = Pool::new(None);
    let many = 3 * FEW_MAX as u64;
    for number in 0..many {
        pool.insert(session(number, 0, number, TTLS[0]));
        assert_sound(&pool);
        assert_eq!(matches!(pool.sessions(), Sessions::Many(_)), pool.live() as usize > FEW_MAX);
        assert_eq!(pool.get(id(number)).map(|session| session.id), Some(id(number)));
        assert!(pool.get(id(many)).is_none() && pool.held_by(&"nobody".into()).is_none());
    }
    for number in 0..many {
        assert_eq!(pool.remove(id(number)).map(|session| session.id), Some(id(number)));
        assert_sound(&pool);
        assert!(pool.get(id(number)).is_none());
    }
    assert!(pool.is_empty());
}
