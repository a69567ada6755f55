//! Tests of cached probes: single flight, bounded waits, failures.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use super::*;

const AGE: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_millis(500);

/// Longer than the rest after an instant probe.
const REST: Duration = Duration::from_millis(100);

/// A source that counts its probes. The result is the number of the probe.
#[derive(Default)]
struct Counting {
    looks: AtomicU64,
    takes: Duration,
    fails: AtomicBool,
}

#[async_trait]
impl Source for Counting {
    type Snapshot = u64;

    async fn probe(&self) -> Result<u64, Error> {
        let number = self.looks.fetch_add(1, SeqCst) + 1;
        tokio::time::sleep(self.takes).await;
        if self.fails.load(SeqCst) { Err(Error::TimedOut) } else { Ok(number) }
    }
}

fn probe(takes: Duration) -> CachedProbe<Counting> {
    CachedProbe::new(Counting { takes, ..Counting::default() }, AGE, PATIENCE)
}

async fn latest(probe: &CachedProbe<Counting>) -> Option<u64> {
    probe.latest().await.as_deref().copied()
}

#[tokio::test]
async fn many_who_ask_at_once_cost_one_look() {
    let probe = probe(Duration::from_millis(100));
    let asked: Vec<_> = (0..100).map(|_| latest(&probe)).collect();
    assert_eq!(futures_util::future::join_all(asked).await, [Some(1); 100]);
    assert_eq!(latest(&probe).await, Some(1));
    assert_eq!(probe.source().looks.load(SeqCst), 1);
}

#[tokio::test]
async fn nobody_waits_long_for_a_source_that_hangs() {
    let probe = probe(Duration::from_secs(3_600));
    let began = Instant::now();
    assert_eq!(latest(&probe).await, None);
    assert_eq!(latest(&probe).await, None);
    assert!(began.elapsed() >= 2 * PATIENCE && began.elapsed() < LOOK_MAX);
    assert_eq!(probe.source().looks.load(SeqCst), 1, "the look that hangs is the only one");
}

#[tokio::test]
async fn what_could_not_be_looked_up_is_not_known() {
    let probe = CachedProbe::new(Counting::default(), Duration::ZERO, LOOK_MAX);
    assert_eq!(latest(&probe).await, Some(1));
    probe.source().fails.store(true, SeqCst);
    becomes(&probe, |latest| latest.is_none()).await;
    probe.source().fails.store(false, SeqCst);
    becomes(&probe, |latest| latest.is_some_and(|number| number >= 3)).await;
}

/// Probes until the result is as expected. On a busy machine a probe takes time, and so does the rest
/// afterwards.
async fn becomes(probe: &CachedProbe<Counting>, is_expected: fn(Option<u64>) -> bool) {
    let began = Instant::now();
    while !is_expected(latest(probe).await) {
        assert!(began.elapsed() < Duration::from_secs(30), "it stays {:?}", latest(probe).await);
        tokio::time::sleep(REST).await;
    }
}
