//! The engine's way to the entitlements of pools.

use async_trait::async_trait;
use seatkeeper_core::{PoolId, RegistryTime, Terms};

/// Looks up what the entitlement of a pool grants. The engine asks when it opens a pool with live sessions after a start or a
/// rebuild, and when it brings a changed entitlement to live sessions. A claim carries its own terms.
#[async_trait]
pub trait TermsSource: Send + Sync + 'static {
    /// Returns what the entitlement of `pool` grants at `now`; `None` if no entitlement is on record.
    async fn terms(
        &self,
        pool: &PoolId,
        now: RegistryTime,
    ) -> Result<Option<Terms>, seatkeeper_ledger::Error>;
}
