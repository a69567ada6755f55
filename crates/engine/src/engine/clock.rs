//! The time that goes with a pool.

use seatkeeper_core::{PoolId, RegistryTime};

use super::Engine;
use crate::error::Error;

impl Engine {
    /// The approximate time of the registry that serves `pool` now, read from no other store. While no registry
    /// serves the pool, the time is that of the registry of capacities.
    pub async fn time_for(&self, pool: &PoolId) -> Result<RegistryTime, Error> {
        let serving = self.backend(pool.kind, pool.bucket());
        let backend = serving.unwrap_or_else(|_| self.registries.for_capacities());
        Ok(backend.registry.about_now().await?)
    }
}
