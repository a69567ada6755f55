//! The parts that the writes of licenses, plans and subscriptions share.

use seatkeeper_core::{Origin, RegistryTime, TenantId};
use seatkeeper_ledger::{Idempotency, Write};
use serde::Serialize;

use super::idempotency::IdempotencyKey;
use crate::app::App;
use crate::error::Error;
use crate::http::{Admin, Meta};

/// A write by an admin: the tenant, the cause, and the idempotency key if the request has one.
pub(super) struct AdminWrite {
    pub(super) tenant: TenantId,
    pub(super) origin: Origin,
    idempotency: Option<Idempotency>,
}

impl AdminWrite {
    /// A write without an idempotency key.
    pub(super) fn new(who: &Admin, meta: &Meta) -> Self {
        Self { tenant: who.tenant.clone(), origin: meta.origin(who.as_admin()), idempotency: None }
    }

    /// A write that repeats of one request under `key` make once. `target` and `request` tell the request from others.
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

    /// The write at `at`, as the ledger takes it.
    pub(super) fn at(&self, at: RegistryTime) -> Write<'_> {
        Write { origin: &self.origin, at, idempotency: self.idempotency.as_ref() }
    }
}

/// Runs a write to its end, also if the client goes away meanwhile. A server that stops waits for the write.
pub(super) async fn carried_through<T, F>(app: App, write: impl FnOnce(App) -> F) -> Result<T, Error>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Error>> + Send + 'static,
{
    let tasks = app.writes.clone();
    tasks.spawn(write(app)).await?
}
