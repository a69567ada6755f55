//! The registry's time for a pool.

use seatkeeper_core::{PoolId, RegistryTime};

use super::Engine;
use crate::backend::Backend;
use crate::error::Error;

impl Engine {
    /// Reads the time that dates the next event of `pool`, from the registry and the server that serve the pool. While no
    /// registry serves the pool, the time is that of the registry of capacities.
    pub async fn time_for(&self, pool: &PoolId) -> Result<RegistryTime, Error> {
        Ok(self.clock_of(pool).registry.now_in(pool.bucket()).await?)
    }

    /// Returns an estimate of the time of [`Self::time_for`], without a request each time. The estimate is at most
    /// [`ESTIMATE_AHEAD_MAX`](seatkeeper_core::ESTIMATE_AHEAD_MAX) ahead.
    pub async fn approximate_time_for(&self, pool: &PoolId) -> Result<RegistryTime, Error> {
        Ok(self.clock_of(pool).registry.approximate_now_in(pool.bucket()).await?)
    }

    fn clock_of(&self, pool: &PoolId) -> &Backend {
        let serving = self.backend(pool.kind, pool.bucket());
        serving.unwrap_or_else(|_| self.registries.for_capacities())
    }
}
