//! Carries out the write of a subscription: commits to the ledger, invalidates the user's cached entitlement,
//! and applies the new terms to the user's live sessions. A session ends when its subscription does, so a new
//! end of the subscription counts for live sessions.

use seatkeeper_core::RegistryTime;
use seatkeeper_ledger::homes::HomeState;
use seatkeeper_ledger::subscriptions::{NewSubscription, Subscription, SubscriptionChange, SubscriptionId};
use seatkeeper_ledger::{self as ledger, Write};

use super::answer::SubscriptionAnswer;
use crate::admin::write::{AdminWrite, carried_through};
use crate::app::App;
use crate::devices;
use crate::entitlements::Changed;
use crate::error::Error;

/// The creation or change of a subscription.
pub(super) enum Wanted {
    New(NewSubscription),
    Change(SubscriptionId, SubscriptionChange),
}

/// A write of a subscription.
pub(super) struct WriteThrough {
    pub(super) write: AdminWrite,
    pub(super) wanted: Wanted,
}

impl WriteThrough {
    /// Applies the write, even if the client disconnects meanwhile.
    pub(super) async fn run(self, app: App) -> Result<SubscriptionAnswer, Error> {
        carried_through(app, |app| async move { self.carry_through(&app).await }).await
    }

    async fn carry_through(self, app: &App) -> Result<SubscriptionAnswer, Error> {
        let Self { write, wanted } = self;
        let at = app.engine.now().await?;
        let written = wanted.write(&write, app, at).await;
        let changed = match &written {
            Ok(subscription) => Some(Changed::Subscriber(write.tenant.clone(), subscription.user.clone())),
            // The user is unknown, so the whole tenant is invalidated.
            Err(error) if error.is_outcome_unknown() => Some(Changed::Tenant(write.tenant.clone())),
            Err(_) => None,
        };
        if let Some(changed) = changed {
            app.entitlements.changed(changed).await;
        }
        let subscription = written?;
        bind_sessions(app, &write, &subscription).await;
        Ok(SubscriptionAnswer::at(at, &subscription))
    }
}

/// Applies the new terms to the user's live sessions. The write is on record, so a registry that is away is no failure of
/// the request: a repeat would find the write done. The engine compares changed entitlements with their pools every few
/// seconds (`Reconcile`), until the terms have arrived.
async fn bind_sessions(app: &App, write: &AdminWrite, subscription: &Subscription) {
    let learned = devices::learn_terms(app, &write.tenant, &subscription.user, &write.origin).await;
    if let Err(error) = learned {
        tracing::warn!(
            subscription_id = %subscription.id.0,
            causes = error.with_causes(),
            "a changed subscription has not reached the user's live sessions: they keep the old terms until their \
             registry serves again"
        );
    }
}

impl Wanted {
    async fn write(self, write: &AdminWrite, app: &App, at: RegistryTime) -> Result<Subscription, Error> {
        let home = app.regions.as_ref().map(|regions| regions.own());
        let at_home = Write { home, ..write.at(at) };
        let is_new = matches!(self, Self::New(_));
        let written = match self {
            Self::New(new) => {
                let starts_at = match new.starts_at {
                    Some(starts_at) => starts_at,
                    None => start_now(app, &new, at).await,
                };
                let new = NewSubscription { starts_at: Some(starts_at), ..new };
                app.ledger.create_subscription(new, at_home).await
            }
            Self::Change(id, change) => {
                app.ledger.update_subscription(&write.tenant, id, &change, at_home).await
            }
        };
        match written {
            Ok(written) => Ok(written.value),
            // The new home answers a repeated creation. No region takes a change during the move.
            Err(ledger::Error::HomeElsewhere { user, home }) if is_new || home.state == HomeState::Moving => {
                Err(Error::HomeMoving { tenant: write.tenant.clone(), user })
            }
            Err(ledger::Error::HomeElsewhere { home, .. }) => Err(Error::HomeElsewhere { home }),
            Err(error) => Err(Error::of_write(error, Error::SubscriptionNotFound)),
        }
    }
}

/// Returns the start of a subscription that starts at once. The clock behind `at` dates the record, and the clock of the
/// user's pool decides when the subscription is active. The start is past by either clock. While no clock of the pool answers,
/// the subscription starts at `at`.
async fn start_now(app: &App, new: &NewSubscription, at: RegistryTime) -> RegistryTime {
    let of_pool = app.engine.time_for(&devices::pool_of(&new.tenant, &new.user)).await;
    of_pool.map_or(at, |of_pool| of_pool.min(at))
}
