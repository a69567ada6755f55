//! The locks of the buckets under rebuild. The locks save double work. No rule of the protocol relies on a lock.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::{Duration, Instant};

use seatkeeper_core::{Bucket, Span};
use seatkeeper_ledger::{Error, Ledger};
use tokio::sync::Mutex;
use uuid::Uuid;

/// The lifetime of a bucket's lock. A node that dies during a rebuild delays the next rebuild by at most this
/// time.
const LOCK_TIME: Span = Span::from_secs(30);

/// After a failure the locks stay for this time, so that the nodes do not rebuild a failing registry in turns.
const LOCK_TIME_AFTER_FAILURE: Span = Span::from_secs(2);

/// The times at which locks are renewed.
#[derive(Clone, Copy, Debug)]
struct Renewal {
    /// The time between two renewals, so that a slow rebuild keeps its locks.
    interval: Duration,
    /// A lock is not renewed later than this time after the begin: the rebuild hangs. A fill of 100,000 sessions takes
    /// 30 s. A healthy rebuild that takes longer goes on, but another node may begin the remaining buckets anew.
    stops_after: Duration,
}

const RENEWAL: Renewal =
    Renewal { interval: Duration::from_secs(10), stops_after: Duration::from_secs(10 * 60) };

/// The locks of the buckets whose work is not done.
pub(super) struct RebuildLocks<'a> {
    ledger: &'a Ledger,
    node: Uuid,
    /// Guarded during each call of the ledger: a renewal under way would lock a released bucket again.
    held: Mutex<BTreeSet<Bucket>>,
    renewal: Renewal,
}

impl<'a> RebuildLocks<'a> {
    /// Locks the buckets for `node`, except buckets locked by another node.
    pub(super) async fn take(ledger: &'a Ledger, node: Uuid, buckets: &[Bucket]) -> Result<Self, Error> {
        let held = ledger.lock_buckets(node, buckets, LOCK_TIME).await?.into_iter().collect();
        Ok(Self { ledger, node, held: Mutex::new(held), renewal: RENEWAL })
    }

    /// Returns the locked buckets.
    pub(super) async fn held(&self) -> BTreeSet<Bucket> {
        self.held.lock().await.clone()
    }

    /// Renews the locks again and again, up to [`Renewal::stops_after`]. Without a renewal the locks run out, and another
    /// node begins anew.
    pub(super) async fn keep(&self) -> Infallible {
        let began = Instant::now();
        loop {
            tokio::time::sleep(self.renewal.interval).await;
            let held = self.held.lock().await;
            if began.elapsed() >= self.renewal.stops_after {
                tracing::warn!(
                    buckets = held.len(),
                    took_ms = began.elapsed().as_millis() as u64,
                    "a rebuild does not come to an end: its locks run out, and another node may rebuild the buckets"
                );
                drop(held);
                return std::future::pending().await;
            }
            if let Err(error) = self.lock(held.iter().copied(), LOCK_TIME).await {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "locks of buckets under rebuild were not renewed"
                );
            }
        }
    }

    /// Releases the locks of `buckets`, whose work is done or has failed. If the ledger fails, the locks run out.
    pub(super) async fn release(&self, buckets: &BTreeSet<Bucket>, has_failed: bool) -> Result<(), Error> {
        let mut held = self.held.lock().await;
        let released: Vec<_> = held.intersection(buckets).copied().collect();
        held.retain(|bucket| !buckets.contains(bucket));
        // A lock without a lifetime is no lock.
        let time = if has_failed { LOCK_TIME_AFTER_FAILURE } else { Span::ZERO };
        self.lock(released.into_iter(), time).await
    }

    async fn lock(&self, buckets: impl Iterator<Item = Bucket>, time: Span) -> Result<(), Error> {
        let buckets: Vec<_> = buckets.collect();
        if buckets.is_empty() {
            return Ok(());
        }
        self.ledger.lock_buckets(self.node, &buckets, time).await.map(drop)
    }
}

#[cfg(test)]
mod tests;
