//! Tests of the quota: concurrent searches do not exceed the quota, and found sessions cost nothing.

use futures_util::poll;

use super::*;
use crate::auth::Scopes;

/// No use comes back during a test.
const RATE: Rate = Rate { burst: 3, interval: 3_600_000_000 };

fn caller(user: &str) -> Caller {
    Caller { tenant: "acme".into(), user: user.into(), scopes: Scopes::default(), expires_at_seconds: 0 }
}

fn quota<'a>((local, searches): &'a (Local, Searches), who: &'a Caller) -> UnknownSessions<'a> {
    UnknownSessions { local, searches, kind: PoolKind::License, who, rate: Some(RATE) }
}

#[tokio::test]
async fn of_concurrent_searches_without_a_result_the_quota_passes_and_no_more() {
    let (counts, ann, bob) = ((Local::new(), Searches::default()), caller("ann"), caller("bob"));
    let (quota, other) = (quota(&counts, &ann), quota(&counts, &bob));
    let mut under_way = Vec::new();
    for _ in 0..RATE.burst {
        under_way.push(quota.charge().await.unwrap());
    }
    let mut waiting = pin!(quota.charge());
    assert!(poll!(waiting.as_mut()).is_pending(), "a search under way may find its session");
    drop(other.charge().await.unwrap());
    assert!(poll!(waiting.as_mut()).is_pending(), "another caller's search");
    while under_way.len() > 1 {
        drop(under_way.pop());
        assert!(poll!(waiting.as_mut()).is_pending(), "{} under way", under_way.len());
    }
    drop(under_way);
    assert!(matches!(waiting.await, Err(Error::TooOften { wait_seconds }) if wait_seconds > 3_000));
    assert!(matches!(quota.charge().await, Err(Error::TooOften { .. })));
    assert!(counts.1.under_way.lock().is_empty());
}

#[tokio::test]
async fn a_search_that_finds_its_session_gives_the_charge_to_the_next() {
    let (counts, ann) = ((Local::new(), Searches::default()), caller("ann"));
    let quota = quota(&counts, &ann);
    let mut under_way = Vec::new();
    for _ in 0..RATE.burst {
        under_way.push(quota.charge().await.unwrap());
    }
    for _ in 0..100 {
        let mut waiting = pin!(quota.charge());
        assert!(poll!(waiting.as_mut()).is_pending());
        under_way.pop().unwrap().give_back();
        under_way.push(waiting.await.unwrap());
    }
    under_way.into_iter().for_each(ChargedSearch::give_back);
    for _ in 0..RATE.burst {
        drop(quota.charge().await.unwrap());
    }
    assert!(matches!(quota.charge().await, Err(Error::TooOften { .. })));
}

#[tokio::test]
async fn without_a_limit_every_search_passes() {
    let (counts, ann) = ((Local::new(), Searches::default()), caller("ann"));
    let quota = UnknownSessions { rate: None, ..quota(&counts, &ann) };
    for _ in 0..100 {
        drop(quota.charge().await.unwrap());
    }
}
