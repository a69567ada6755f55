//! Carries a write of a subscription through: the ledger, what is remembered of its user, and the user's
//! sessions, which end when the subscription does: a new end counts for those that are live.

use seatkeeper_core::{Origin, RegistryTime, TenantId};
use seatkeeper_ledger::subscriptions::{NewSubscription, Subscription, SubscriptionChange, SubscriptionId};
use seatkeeper_ledger::{Idempotency, Write};

use super::answer::SubscriptionAnswer;
use crate::app::App;
use crate::devices;
use crate::entitlements::Changed;
use crate::error::Error;

/// What to write.
pub(super) enum Wanted {
    New(NewSubscription),
    Change(SubscriptionId, SubscriptionChange),
}

/// One write of one subscription.
pub(super) struct WriteThrough {
    pub(super) tenant: TenantId,
    pub(super) wanted: Wanted,
    pub(super) idempotency: Option<Idempotency>,
    pub(super) origin: Origin,
}

impl WriteThrough {
    /// Carries the write through, also if the caller goes away meanwhile.
    pub(super) async fn run(self, app: App) -> Result<SubscriptionAnswer, Error> {
        let tasks = app.writes.clone();
        tasks.spawn(async move { self.carry_through(&app).await }).await?
    }

    async fn carry_through(self, app: &App) -> Result<SubscriptionAnswer, Error> {
        let (tenant, origin) = (self.tenant.clone(), self.origin.clone());
        let at = app.engine.now().await?;
        let written = self.write(app, at).await;
        let changed = match &written {
            Ok(subscription) => Changed::Subscriber(tenant.clone(), subscription.user.clone()),
            // It may have been written all the same.
            Err(_) => Changed::Tenant(tenant.clone()),
        };
        app.entitlements.changed(changed).await;
        let subscription = written?;
        devices::learn_terms(app, &tenant, &subscription.user, &origin).await?;
        Ok(SubscriptionAnswer::at(at, &subscription))
    }

    async fn write(self, app: &App, at: RegistryTime) -> Result<Subscription, Error> {
        let write = Write { origin: &self.origin, at, idempotency: self.idempotency.as_ref() };
        let written = match self.wanted {
            Wanted::New(new) => app.ledger.create_subscription(new, write).await,
            Wanted::Change(id, change) => {
                app.ledger.update_subscription(&self.tenant, id, &change, write).await
            }
        };
        Ok(written.map_err(|error| Error::of_write(error, Error::SubscriptionNotFound))?.value)
    }
}
