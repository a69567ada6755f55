//! Who is told that entitlements have changed.

use seatkeeper_core::{TenantId, UserId};
use seatkeeper_ledger::licenses::LicenseId;
use tokio::sync::broadcast::{self, error::RecvError};

/// Changes that may wait for a listener: one that is further behind is told that something changed.
const WAITING_MAX: usize = 256;

/// Entitlements that have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    /// What this user may have.
    Subscriber(TenantId, UserId),
    /// What any of the tenant's users may have, by a plan.
    Tenant(TenantId),
    /// A license.
    License(TenantId, LicenseId),
    /// Nobody knows what: changes may have been missed.
    Anything,
}

impl Changed {
    /// Whether it may have changed what this subscriber may have.
    pub(super) fn concerns(&self, tenant: &TenantId, user: &UserId) -> bool {
        match self {
            Self::Subscriber(of, changed) => of == tenant && changed == user,
            Self::Tenant(of) => of == tenant,
            Self::License(..) => false,
            Self::Anything => true,
        }
    }
}

/// Tells listeners of changes.
pub(super) struct Announcements(broadcast::Sender<Changed>);

impl Announcements {
    pub(super) fn new() -> Self {
        Self(broadcast::Sender::new(WAITING_MAX))
    }

    /// Tells whoever listens; that nobody does is no matter.
    pub(super) fn announce(&self, changed: Changed) {
        let _ = self.0.send(changed);
    }

    pub(super) fn listen(&self, tenant: TenantId, user: UserId) -> Listening {
        Listening { tenant, user, changes: self.0.subscribe() }
    }
}

/// Hears what may have changed one subscriber's entitlement, from when it was made on.
pub(crate) struct Listening {
    tenant: TenantId,
    user: UserId,
    changes: broadcast::Receiver<Changed>,
}

impl Listening {
    /// Resolves when the subscriber's entitlement may have changed: look it up again then. To drop the
    /// future loses nothing.
    pub(crate) async fn changed(&mut self) {
        loop {
            match self.changes.recv().await {
                Ok(changed) if !changed.concerns(&self.tenant, &self.user) => {}
                Ok(_) | Err(RecvError::Lagged(_)) => return,
                // Nothing will ever change again.
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}
