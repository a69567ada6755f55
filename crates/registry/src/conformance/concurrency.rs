//! Clauses with many concurrent callers, each on its own thread and, with several nodes, on its own node.

use std::sync::Barrier;
use std::thread;

use seatkeeper_core::EndReason;
use tokio::runtime::Handle;

use super::harness::{Harness, Scene};
use super::plan::{Plan, devices, seats};
use super::pool::{TestPool, admin, owner};
use crate::Ended;

pub async fn claims_racing_for_the_last_seat_admit_one(h: &impl Harness) {
    for round in 0..5 {
        let plan = seats(2).called(&format!("pool {round}"));
        h.pool(plan.clone()).await.claim("first").await.admitted();
        let asked = at_once(h, &plan, 16, async |pool, n| pool.claim(&format!("machine {n}")).await);
        assert_eq!(asked.iter().filter(|asked| asked.is_admitted()).count(), 1, "{asked:?}");
    }
}

pub async fn retries_of_one_claim_take_one_seat(h: &impl Harness) {
    let plan = seats(3);
    let pool = h.pool(plan.clone()).await;
    let asked = at_once(h, &plan, 50, async |pool, _| pool.claim("ann").await);
    let admitted = asked.iter().filter(|asked| asked.is_admitted()).count();
    assert_eq!((admitted, pool.view().await.live), (1, 1), "{asked:?}");
    let others = asked.into_iter().filter(|asked| !asked.is_admitted());
    let ids: Vec<_> = others.map(|asked| asked.resumed().session.id).collect();
    assert_eq!(ids.len(), 49);
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}

pub async fn one_device_claiming_many_times_at_once_is_left_with_one_session(h: &impl Harness) {
    let plan = devices(2);
    let pool = h.pool(plan.clone()).await;
    let asked = at_once(h, &plan, 30, async |pool, _| pool.claim("tv").await);
    assert!(asked.iter().all(|asked| asked.is_admitted()), "{asked:?}");
    assert_eq!(pool.view().await.live, 1);
}

pub async fn a_session_that_many_end_at_once_ends_once(h: &impl Harness) {
    let plan = seats(1);
    let ann = h.pool(plan.clone()).await.claim("ann").await.admitted();
    let ends = at_once(h, &plan, 20, async |pool, _| {
        pool.end_by(&admin(), ann.session.id, EndReason::Revoked).await
    });
    let ended = ends.iter().filter(|ended| matches!(ended, Ended::Now { .. })).count();
    assert_eq!(ended, 1, "{ends:?}");
}

/// `books::balance` after each clause proves the limit at every instant.
pub async fn a_storm_never_fills_a_pool_above_its_limit(h: &impl Harness) {
    for plan in [seats(3), devices(3)] {
        h.pool(plan.clone()).await;
        at_once(h, &plan, 12, async |pool, n| {
            for round in 0..5 {
                let asked = pool.claim(&format!("client {}", (n + round) % 8)).await;
                if asked.is_admitted() {
                    let claimed = asked.answered();
                    assert!(claimed.live <= claimed.limit.0, "{claimed:?}");
                    let crate::Answer::Granted { session, .. } = claimed.answer else { continue };
                    pool.heartbeat_by(&owner(&session), session.session.id).await;
                    pool.end_by(&owner(&session), session.session.id, EndReason::Released).await;
                }
            }
        });
    }
}

/// Runs `act` on `count` threads at one instant.
fn at_once<T: Send>(
    h: &impl Harness,
    plan: &Plan,
    count: usize,
    act: impl AsyncFn(TestPool, usize) -> T + Sync,
) -> Vec<T> {
    let (runtime, start) = (Handle::current(), Barrier::new(count));
    let run = |n: usize| {
        let pool = h.pool_not_open(plan.clone());
        start.wait();
        runtime.block_on(act(pool, n))
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|n| scope.spawn(move || run(n))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a caller does not panic")).collect()
    })
}
