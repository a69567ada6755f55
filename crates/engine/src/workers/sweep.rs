//! Records the ends of expired sessions. A seat is free from the end of its TTL, so the sweep serves the
//! record alone.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use rand::seq::SliceRandom as _;
use seatkeeper_registry::{Error as RegistryError, Registry, Swept};

use crate::backend::Backend;
use crate::error::Error;
use crate::worker::{Progress, Worker};

/// The number of pools of a bucket swept before the next bucket's turn.
const SWEEP_POOLS_MAX: usize = 128;

/// The number of buckets swept concurrently. The number is small, because an expired session takes no seat
/// and claims go first. With two, claims keep at least 0.7 of their throughput meanwhile (the benchmark
/// `expiries` of the registry over Redis).
const BUCKETS_AT_ONCE: usize = 2;

/// The worker that sweeps the buckets of a backend.
pub(crate) struct Sweep {
    backend: Backend,
    interval: Duration,
}

impl Sweep {
    /// Returns the worker that sweeps every due bucket once an interval.
    pub(crate) fn new(backend: Backend, interval: Duration) -> Self {
        // The start counts as a sweep: otherwise a sweeper that never succeeds would go unnoticed.
        *backend.swept.lock() = Some(Instant::now());
        Self { backend, interval }
    }
}

#[async_trait]
impl Worker for Sweep {
    type Error = Error;

    fn name(&self) -> &'static str {
        "sweep"
    }

    fn rest(&self) -> Duration {
        self.interval
    }

    /// One bucket that fails must not slow the sweep of the others down.
    fn retry_pause_max(&self) -> Duration {
        self.interval
    }

    async fn activate(&self) -> Result<Progress, Error> {
        let began = Instant::now();
        let left = match self.backend.serves_any() {
            true => sweep_due(&*self.backend.registry).await?,
            false => Progress::Idle,
        };
        if left == Progress::Idle {
            *self.backend.swept.lock() = Some(began);
        }
        Ok(left)
    }
}

/// Sweeps each due bucket once. Returns [`Progress::More`] if a bucket has more to sweep. Skips a bucket that
/// is not served at present. A bucket that fails holds up no other: its error is returned at the end.
pub async fn sweep_due(registry: &dyn Registry) -> Result<Progress, Error> {
    let mut due = registry.due_buckets().await?;
    // Each node shuffles the buckets: two nodes rarely sweep the same bucket at once.
    due.shuffle(&mut rand::rng());
    Ok(sweep_all(due.into_iter().map(|bucket| registry.sweep(bucket, SWEEP_POOLS_MAX))).await?)
}

/// Runs the sweeps of all due buckets.
async fn sweep_all(
    sweeps: impl Iterator<Item = impl Future<Output = Result<Swept, RegistryError>>>,
) -> Result<Progress, RegistryError> {
    let mut sweeps = stream::iter(sweeps).buffer_unordered(BUCKETS_AT_ONCE);
    let (mut left, mut failure) = (Progress::Idle, None);
    while let Some(swept) = sweeps.next().await {
        match swept {
            Ok(swept) if swept.more => left = Progress::More,
            Ok(_) | Err(RegistryError::NotServing { .. }) => {}
            Err(error) => failure = Some(error),
        }
    }
    failure.map_or(Ok(left), Err)
}

#[cfg(test)]
mod tests;
