//! The registry's time for a pool.

use seatkeeper_core::{PoolId, RegistryTime};

use super::Engine;
use crate::error::Error;

impl Engine {
    /// Returns the approximate time of the registry that serves `pool`. While no registry serves the pool,
    /// the time is that of the registry of capacities.
    pub async fn time_for(&self, pool: &PoolId) -> Result<RegistryTime, Error> {
        let serving = self.backend(pool.kind, pool.bucket());
        let backend = serving.unwrap_or_else(|_| self.registries.for_capacities());
        Ok(backend.registry.approximate_now().await?)
    }
}
