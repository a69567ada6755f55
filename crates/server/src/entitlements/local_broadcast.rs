//! In-process broadcast of changes of entitlements and of groups to listeners. A listener wakes after every change of its
//! entitlement; a wake-up may be spurious.

use seatkeeper_core::{SessionId, TenantId, UserId};
use seatkeeper_ledger::licenses::LicenseId;
use tokio::sync::broadcast::{self, error::RecvError};

/// Number of changes buffered for a slow listener. A listener that lags further behind wakes once, without
/// the details.
const WAITING_MAX: usize = 256;

/// The scope of a change of entitlements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    /// The subscription of a user.
    Subscriber(TenantId, UserId),
    /// A plan of the tenant, or a subscription of an unknown user: every user of the tenant may be affected.
    Tenant(TenantId),
    /// A license.
    License(TenantId, LicenseId),
    /// The members of a group. No cached entry is affected.
    Group(TenantId, SessionId),
    /// An unknown scope: messages may have been lost, so every cached entry may be stale.
    Anything,
}

impl Changed {
    /// Returns `true` if the change may affect the watched entitlement.
    pub(super) fn concerns(&self, watched: &Watched) -> bool {
        match (self, watched) {
            (Self::Subscriber(of, changed), Watched::Subscriber(tenant, user)) => {
                of == tenant && changed == user
            }
            (Self::Tenant(of), Watched::Subscriber(tenant, _)) => of == tenant,
            (Self::License(_, changed), Watched::License(id)) => changed == id,
            (Self::Group(of, changed), Watched::Group(tenant, group)) => of == tenant && changed == group,
            (Self::Anything, _) => true,
            (Self::Subscriber(..) | Self::Tenant(_) | Self::License(..) | Self::Group(..), _) => false,
        }
    }
}

/// An entitlement with a listener.
pub(super) enum Watched {
    /// The entitlement of a subscriber.
    Subscriber(TenantId, UserId),
    /// A license.
    License(LicenseId),
    /// The members of a group.
    Group(TenantId, SessionId),
}

/// The sending end of the broadcast.
pub(super) struct LocalBroadcast(broadcast::Sender<Changed>);

impl LocalBroadcast {
    pub(super) fn new() -> Self {
        Self(broadcast::Sender::new(WAITING_MAX))
    }

    /// Sends a change to every listener. Without listeners the change is dropped.
    pub(super) fn announce(&self, changed: Changed) {
        let _ = self.0.send(changed);
    }

    pub(super) fn listen(&self, watched: Watched) -> Listening {
        Listening { watched, changes: self.0.subscribe() }
    }
}

/// A listener for changes of an entitlement. A change after the listener's creation is never
/// missed.
pub(crate) struct Listening {
    watched: Watched,
    changes: broadcast::Receiver<Changed>,
}

impl Listening {
    /// Waits until the entitlement may have changed. The caller then looks the entitlement up
    /// again. Cancel-safe: dropping the future loses no change.
    pub(crate) async fn changed(&mut self) {
        loop {
            match self.changes.recv().await {
                Ok(changed) if !changed.concerns(&self.watched) => {}
                Ok(_) | Err(RecvError::Lagged(_)) => return,
                // The sender is gone, so no change can follow.
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}
