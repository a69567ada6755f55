//! Puts the seats of silent holders on record as expired. They were free before: this is for the record.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use seatkeeper_core::{Bucket, RegistryTime};
use seatkeeper_registry::{Error as RegistryError, Registry};

use super::driver::{Left, Worker};
use crate::error::Error;

/// Pools that one step on a bucket sweeps, while its claims and heartbeats wait.
const SWEEP_POOLS_MAX: usize = 64;

pub(crate) struct Sweep {
    pub(crate) registry: Arc<dyn Registry>,
    pub(crate) interval: Duration,
}

#[async_trait]
impl Worker for Sweep {
    fn name(&self) -> &'static str {
        "sweep"
    }

    fn rest(&self) -> Duration {
        self.interval
    }

    async fn activate(&self) -> Result<Left, Error> {
        sweep_due(&*self.registry).await
    }
}

/// Sweeps each bucket that is due, a step each, and says whether more is due already. A bucket that is not served at
/// present has its turn later.
pub(crate) async fn sweep_due(registry: &dyn Registry) -> Result<Left, Error> {
    let now = registry.now().await?;
    let mut left = Left::Nothing;
    for bucket in Bucket::all() {
        match sweep_if_due(registry, bucket, now).await {
            Ok(true) => left = Left::More,
            Ok(false) | Err(RegistryError::NotServing { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(left)
}

async fn sweep_if_due(
    registry: &dyn Registry,
    bucket: Bucket,
    now: RegistryTime,
) -> Result<bool, RegistryError> {
    let is_due = registry.due(bucket).await?.is_some_and(|due| due <= now);
    Ok(is_due && registry.sweep(bucket, SWEEP_POOLS_MAX).await?.more)
}
