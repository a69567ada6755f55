//! Puts the seats of silent holders on record as expired. They were free before: this is for the record.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use rand::seq::SliceRandom as _;
use seatkeeper_registry::{Error as RegistryError, Registry};

use crate::backend::Backend;
use crate::error::Error;
use crate::worker::{Progress, Worker};

/// Pools of a bucket that are swept before the next bucket has its turn.
const SWEEP_POOLS_MAX: usize = 128;

/// Buckets that are swept at the same time: few, for what is over takes no seat, and those who want in go first. With two,
/// they keep at least 0.7 of their throughput meanwhile (the benchmark `expiries` of the registry over Redis).
const BUCKETS_AT_ONCE: usize = 2;

pub(crate) struct Sweep {
    backend: Backend,
    interval: Duration,
}

impl Sweep {
    /// Looks at every bucket once an interval.
    pub(crate) fn new(backend: Backend, interval: Duration) -> Self {
        // So that one that never has its way is seen as well.
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

/// Sweeps each due bucket once. Returns [`Progress::More`] if a bucket has more to sweep. A bucket that is not served at
/// present has its turn later.
pub async fn sweep_due(registry: &dyn Registry) -> Result<Progress, Error> {
    let mut due = registry.due_buckets().await?;
    // Each node takes them in an order of its own, so that they do not do the same work at the same time.
    due.shuffle(&mut rand::rng());
    let swept = due.into_iter().map(|bucket| registry.sweep(bucket, SWEEP_POOLS_MAX));
    let mut swept = stream::iter(swept).buffer_unordered(BUCKETS_AT_ONCE);
    let mut left = Progress::Idle;
    while let Some(swept) = swept.next().await {
        match swept {
            Ok(swept) if swept.more => left = Progress::More,
            Ok(_) | Err(RegistryError::NotServing { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(left)
}
