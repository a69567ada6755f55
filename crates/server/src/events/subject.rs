//! Entitlement behind a watched session. Each API has an implementation of its own.

use std::time::Duration;

use seatkeeper_core::{PoolId, PoolKind};
use serde_json::Value;

use crate::app::App;
use crate::error::Error;

/// The entitlement behind a session, watched for changes.
pub(crate) trait Subject: Sized + Send + 'static {
    /// The kind of the pools behind the sessions of the API.
    const KIND: PoolKind;

    /// Begins to listen for changes of the entitlement of `pool`. No later change is missed.
    fn listen(app: &App, pool: &PoolId) -> Self;

    /// Waits until the entitlement may have changed. Wake-ups may be spurious. Cancel-safe.
    fn changed(&mut self) -> impl Future<Output = ()> + Send;

    /// Returns the current entitlement.
    fn entitlement(&self) -> impl Future<Output = Result<Entitlement, Error>> + Send;
}

/// An entitlement at a version, as told to clients.
pub(crate) struct Entitlement {
    /// Version, raised by each change.
    pub(crate) version: u64,
    /// Name of the event of a change.
    pub(crate) event: &'static str,
    /// Data of the event of a change.
    pub(crate) data: Value,
    /// Time until the entitlement changes by time alone, without a notice.
    pub(crate) changes_in: Option<Duration>,
}
