//! Mass expiry: many sessions are over in one instant, while clients ask for admission.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use seatkeeper_core::{Bucket, Span};

use crate::stage::{Kind, Stage};
use seatkeeper_registry::Expiry as _;

const TASKS: usize = 64;
const PER_POOL: usize = 4;
const KIND: Kind = Kind::Household { devices: PER_POOL as u32 };

/// Time to fill the pools, and to count admissions before the expiry.
const FILLED_IN: Span = Span::from_secs(60);

const FILLED_MARGIN: Span = Span::from_secs(6);

/// Concurrency and batch size of a node's sweeper.
const BUCKETS_AT_ONCE: usize = 2;
const SWEEP_POOLS_MAX: usize = 128;

/// Time for which admissions are counted before the expiry.
const BEFORE: Duration = Duration::from_secs(4);

pub(crate) async fn measure(sessions: usize) {
    println!("{sessions} expiries in one instant, {PER_POOL} in a pool, beside {TASKS} tasks that admit");
    let stage = Arc::new(Stage::start().await);
    // The end of every session's entitlement.
    let end = stage.registry.now().await.unwrap() + FILLED_IN;
    let pools: Vec<_> = (0..sessions / PER_POOL).map(|n| KIND.pool(n)).collect();
    for pool in &pools {
        stage.open_until(pool, KIND, Some(end)).await;
    }
    let filled =
        stream::iter(0..sessions).map(|n| stage.admit_until(&pools[n / PER_POOL], KIND, n, Some(end)));
    filled.buffer_unordered(TASKS).for_each(|_| async {}).await;
    stage.drain().await;

    let (admitted, is_over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let newcomers: Vec<_> = (0..TASKS)
        .map(|task| {
            let (stage, admitted, is_over) =
                (Arc::clone(&stage), Arc::clone(&admitted), Arc::clone(&is_over));
            tokio::spawn(async move {
                let pool = KIND.pool(sessions + task);
                stage.open(&pool, KIND).await;
                let mut n = 0;
                while !is_over.load(Ordering::Relaxed) {
                    stage.admit(&pool, KIND, n * TASKS + task).await;
                    admitted.fetch_add(1, Ordering::Relaxed);
                    n += 1;
                }
            })
        })
        .collect();
    assert!(
        stage.registry.now().await.unwrap() + FILLED_MARGIN < end,
        "this machine takes too long to fill the pools"
    );
    let before = rate(&admitted, tokio::time::sleep(BEFORE)).await.0;
    while stage.registry.now().await.unwrap() < end {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let mut ended = 0;
    let (during, took) = rate(&admitted, async {
        while ended < sessions {
            ended += sweep(&stage).await;
        }
    })
    .await;
    is_over.store(true, Ordering::Relaxed);
    for newcomer in newcomers {
        newcomer.await.unwrap();
    }
    println!("  swept in {:.2} s of 5 at most", took.as_secs_f64());
    println!(
        "  admissions {before:.0}/s before, {during:.0}/s meanwhile: {:.2} of 0.7 at least",
        during / before
    );
}

/// Returns the counts per second during `act`, and the duration of `act`.
async fn rate(count: &AtomicUsize, act: impl Future<Output = ()>) -> (f64, Duration) {
    let (before, started) = (count.load(Ordering::Relaxed), Instant::now());
    act.await;
    let took = started.elapsed();
    ((count.load(Ordering::Relaxed) - before) as f64 / took.as_secs_f64(), took)
}

async fn sweep(stage: &Stage) -> usize {
    let swept = stream::iter(Bucket::all())
        .map(|bucket| async move { stage.registry.sweep(bucket, SWEEP_POOLS_MAX).await.unwrap().ended });
    swept.buffer_unordered(BUCKETS_AT_ONCE).fold(0, |sum, ended| async move { sum + ended }).await
}
