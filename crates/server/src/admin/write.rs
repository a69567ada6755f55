//! Shared parts of the writes of licenses, plans and subscriptions.

use seatkeeper_core::{Origin, RegistryTime, TenantId};
use seatkeeper_ledger::{Idempotency, Write};
use serde::Serialize;

use super::idempotency::IdempotencyKey;
use super::versions::IfMatch;
use crate::app::App;
use crate::error::Error;
use crate::http::{Admin, Meta};

/// A write by an admin: the tenant, the origin, and the idempotency key and expected version if the request has them.
pub(super) struct AdminWrite {
    pub(super) tenant: TenantId,
    pub(super) origin: Origin,
    idempotency: Option<Idempotency>,
    expected_version: Option<u64>,
}

impl AdminWrite {
    /// Creates a write without an idempotency key.
    pub(super) fn new(who: &Admin, meta: &Meta) -> Self {
        Self {
            tenant: who.tenant.clone(),
            origin: meta.origin(who.as_admin()),
            idempotency: None,
            expected_version: None,
        }
    }

    /// Creates an idempotent write: repeats of a request under `key` take effect a single time. `target` and
    /// `request` distinguish the request from other requests.
    pub(super) fn with_key(
        who: &Admin,
        meta: &Meta,
        key: IdempotencyKey,
        target: &str,
        request: &impl Serialize,
    ) -> Result<Self, Error> {
        let idempotency = key.for_request(&who.user, target, request)?;
        Ok(Self { idempotency, ..Self::new(who, meta) })
    }

    /// Returns the write with the version that the caller expects.
    pub(super) fn if_match(self, IfMatch(expected_version): IfMatch) -> Self {
        Self { expected_version, ..self }
    }

    /// Returns the ledger's form of the write, at time `at`.
    pub(super) fn at(&self, at: RegistryTime) -> Write<'_> {
        Write {
            origin: &self.origin,
            at,
            idempotency: self.idempotency.as_ref(),
            home: None,
            expected_version: self.expected_version,
        }
    }
}

/// Runs a write to its end, even if the client disconnects meanwhile. A stopping server waits for the write.
pub(super) async fn carried_through<T, F>(app: App, write: impl FnOnce(App) -> F) -> Result<T, Error>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Error>> + Send + 'static,
{
    let tasks = app.writes.clone();
    tasks.spawn(write(app)).await?
}
