//! The engine's access to the entitlements of pools. The program implements the trait.

use async_trait::async_trait;
use seatkeeper_core::{PoolId, RegistryTime, Terms};

/// Looks up the terms of a pool's entitlement. The engine asks when it opens a pool with live sessions after
/// a start or a rebuild, and when it applies a changed entitlement to live sessions. A claim carries its own
/// terms.
#[async_trait]
pub trait TermsSource: Send + Sync + 'static {
    /// Returns the terms that the entitlement of `pool` grants at `now`; `None` if no entitlement is in the
    /// ledger.
    async fn terms(
        &self,
        pool: &PoolId,
        now: RegistryTime,
    ) -> Result<Option<Terms>, seatkeeper_ledger::Error>;
}
