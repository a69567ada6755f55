//! Clauses on sweeps: expired sessions are found by an index, without a scan, and any node may sweep.

use seatkeeper_core::{Bucket, Change, EndReason, PoolId, RegistryTime, Span};

use super::books::{events_of, sweep_all};
use super::harness::{Harness, Scene};
use super::plan::{Plan, seats};
use super::pool::TestPool;
use crate::Swept;

pub async fn a_sweep_ends_what_is_over_and_records_it_once(h: &impl Harness) {
    let pool = h.pool(seats(2).brief()).await;
    pool.claim("ann").await.admitted();
    pool.claim("bob").await.admitted();
    h.let_pass(pool.ttl()).await;
    assert_eq!(sweep_all(&*pool.registry).await, 2);
    assert_eq!(sweep_all(&*pool.registry).await, 0);
    let events = events_of(&*pool.registry, &pool.id).await;
    let expired = |event: &&seatkeeper_core::Event| matches!(event.change, Change::Ended { reason: EndReason::Expired, expires, .. } if expires <= event.at);
    assert_eq!((events.len(), events.iter().filter(expired).count()), (4, 2));
}

pub async fn a_sweep_leaves_the_living_alone(h: &impl Harness) {
    let pool = h.pool(seats(2)).await;
    pool.claim("ann").await.admitted();
    let brief = h.pool(seats(1).brief().called("brief")).await;
    brief.claim("bob").await.admitted();
    h.let_pass(brief.ttl()).await;
    assert_eq!(sweep_all(&*pool.registry).await, 1);
    assert_eq!(pool.holders().await, ["ann"]);
}

pub async fn a_sweep_takes_no_more_pools_than_it_may_and_says_that_more_is_due(h: &impl Harness) {
    let pools = neighbours(h, &seats(2).brief(), 3).await;
    for pool in &pools {
        pool.claim("ann").await.admitted();
        pool.claim("bob").await.admitted();
    }
    h.let_pass(pools[0].ttl()).await;
    let mut ended = 0;
    for _ in 0..100 {
        let swept = sweep(&pools[0], 1).await;
        assert!(swept.ended <= 2, "{swept:?}");
        ended += swept.ended;
        assert!(swept.more || ended == 6, "more is due: {swept:?}");
        if !swept.more {
            return;
        }
    }
    panic!("sweeping does not come to an end");
}

pub async fn a_sweep_ends_those_who_are_over_and_keeps_the_others_of_their_pool(h: &impl Harness) {
    let pool = h.pool(seats(3).brief()).await;
    let ann = pool.claim("ann").await.admitted();
    let bob = pool.claim("bob").await.admitted();
    pool.claim("cid").await.admitted();
    h.let_pass(Span::from_millis(pool.ttl().as_millis() / 2)).await;
    let renewed = pool.heartbeat(&bob).await;
    h.let_pass(ann.expires.since(h.now().await)).await;
    assert_eq!(sweep_all(&*pool.registry).await, 2);
    due_by(&pool, renewed.expires).await;
    assert_eq!(pool.holders().await, ["bob"]);
    pool.heartbeat(&bob).await;
}

/// Sweeps report remaining work for any number of expired sessions.
pub async fn a_sweep_that_leaves_some_who_are_over_says_so(h: &impl Harness) {
    const EACH: usize = 100;
    let pools = neighbours(h, &seats(EACH as u32).brief(), 4).await;
    for pool in &pools {
        for number in 0..EACH {
            pool.claim(&format!("machine {number}")).await.admitted();
        }
        let end = pool.registry.journal_end(pool.bucket()).await.expect("a journal has an end");
        pool.registry.journal_acknowledge(end).await.expect("a journal forgets");
    }
    h.let_pass(pools[0].ttl()).await;
    let (mut ended, mut more) = (0, true);
    while more {
        let swept = sweep(&pools[0], pools.len()).await;
        (ended, more) = (ended + swept.ended, swept.more);
    }
    assert_eq!(ended, pools.len() * EACH);
}

pub async fn what_is_due_is_never_later_than_the_next_expiry(h: &impl Harness) {
    let pool = h.pool(seats(2).brief()).await;
    let ann = pool.claim("ann").await.admitted();
    due_by(&pool, ann.expires).await;
    h.let_a_moment_pass().await;
    pool.claim("bob").await.admitted();
    due_by(&pool, ann.expires).await;
    // Renewed late, so that the sweep below finds the session live on any clock.
    h.let_pass(Span::from_millis(pool.ttl().as_millis() / 2)).await;
    let renewed = pool.heartbeat(&ann).await;
    due_by(&pool, renewed.expires).await;
    h.let_pass(ann.expires.since(h.now().await)).await;
    sweep_all(&*pool.registry).await;
    due_by(&pool, renewed.expires).await;
}

pub async fn after_a_sweep_nothing_is_due_already(h: &impl Harness) {
    let pool = h.pool(seats(1).brief()).await;
    let ann = pool.claim("ann").await.admitted();
    h.let_a_moment_pass().await;
    pool.heartbeat(&ann).await;
    h.let_pass(ann.expires.since(h.now().await)).await;
    let swept_after = h.now().await;
    sweep_all(&*pool.registry).await;
    let due = pool.registry.due(pool.bucket()).await.expect("a bucket knows what is due");
    assert!(due.is_none_or(|due| due > swept_after), "a sweeper would come by for nothing: {due:?}");
}

pub async fn a_shortened_entitlement_is_due_at_its_new_end(h: &impl Harness) {
    let pool = h.pool(seats(1)).await;
    pool.claim("ann").await.admitted();
    let ends_at = h.now().await + h.ttl();
    pool.revise(pool.after(|terms| terms.ends_at = Some(ends_at)).terms()).await;
    due_by(&pool, ends_at).await;
    h.let_pass(h.ttl()).await;
    assert_eq!(sweep_all(&*pool.registry).await, 1);
}

pub async fn a_session_renewed_under_a_shorter_ttl_is_due_no_later_than_it_is_over(h: &impl Harness) {
    let pool = h.pool(seats(1)).await;
    let ann = pool.claim("ann").await.admitted();
    pool.revise(pool.after(|terms| terms.ttl = h.ttl()).terms()).await;
    let renewed = pool.heartbeat(&ann).await;
    assert!(renewed.expires < ann.expires);
    due_by(&pool, renewed.expires).await;
    h.let_pass(h.ttl()).await;
    assert_eq!(sweep_all(&*pool.registry).await, 1);
}

pub async fn a_shorter_ttl_of_a_claim_is_due_no_later_than_it_is_over(h: &impl Harness) {
    let pool = h.pool(seats(1)).await;
    let ann = pool.claim("ann").await.admitted();
    pool.of_same_version(|terms| terms.ttl = h.ttl()).claim("bob").await.full();
    let renewed = pool.heartbeat(&ann).await;
    assert!(renewed.expires < ann.expires);
    due_by(&pool, renewed.expires).await;
    h.let_pass(h.ttl()).await;
    assert_eq!(sweep_all(&*pool.registry).await, 1);
}

pub async fn a_bucket_that_never_held_anything_has_nothing_due(h: &impl Harness) {
    let pool = h.pool(seats(1)).await;
    pool.claim("ann").await.admitted();
    for bucket in Bucket::all().filter(|&bucket| bucket != pool.bucket()) {
        assert_eq!(pool.registry.due(bucket).await.expect("a bucket knows what is due"), None);
    }
}

async fn due_by(pool: &TestPool, time: RegistryTime) {
    let due = pool.registry.due(pool.bucket()).await.expect("a bucket knows what is due");
    assert!(due.is_some_and(|due| due <= time), "due at {due:?}, expected by {time:?}");
}

async fn sweep(pool: &TestPool, pools_max: usize) -> Swept {
    pool.registry.sweep(pool.bucket(), pools_max).await.expect("a bucket can be swept")
}

/// Opens `count` pools of one bucket.
async fn neighbours(h: &impl Harness, plan: &Plan, count: usize) -> Vec<TestPool> {
    let first = h.pool_not_open(plan.clone());
    let mut pools = Vec::new();
    for name in (0..).map(|n| format!("pool {n}")) {
        let id = PoolId::new(first.id.kind, first.id.tenant.clone(), name.as_str());
        if id.bucket() == first.bucket() {
            pools.push(h.pool(plan.clone().called(&name)).await);
        }
        if pools.len() == count {
            break;
        }
    }
    pools
}
