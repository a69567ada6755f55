//! What gives pools their limits.

mod announcements;
mod bulletin;
mod capacities;
mod licenses;
mod memory;
mod subscribers;

use std::sync::Arc;

use async_trait::async_trait;
use seatkeeper_core::{PoolId, PoolKind, RegistryTime, Span, Terms, UserId};
use seatkeeper_engine::TermsSource;
use seatkeeper_ledger::Ledger;

use crate::settings::Settings;
pub(crate) use announcements::{Changed, Listening};
pub(crate) use bulletin::{EndTeller, EndedAbroad, Listener, NoticeReader, Others};
pub(crate) use capacities::capacity_terms;
pub(crate) use licenses::{Licenses, terms_of};
pub(crate) use subscribers::{DEVICES_MAX, Subscribers};

/// The entitlements that a node remembers, and its way to the nodes that remember them as well.
pub(crate) struct Entitlements {
    pub(crate) licenses: Licenses,
    pub(crate) subscribers: Subscribers,
    /// `None`: there are no others.
    pub(crate) others: Option<Others>,
}

impl Entitlements {
    /// Forgets what has changed in the ledger, here and on every node.
    pub(crate) async fn changed(&self, changed: Changed) {
        // First what is shared: whoever forgets reads it again.
        self.subscribers.forget_shared(&changed).await;
        self.forget(changed.clone());
        if let Some(others) = &self.others
            && let Err(error) = bulletin::tell(others, &changed).await
        {
            let causes = error.with_causes();
            tracing::warn!(%causes, "the other nodes were not told of a change; they will see it for themselves");
        }
    }

    /// Forgets what has changed in the ledger, here.
    fn forget(&self, changed: Changed) {
        self.licenses.forget(&changed);
        self.subscribers.forget(changed);
    }
}

/// The entitlements of pools on record, with the defaults of the settings.
pub(crate) struct PoolTerms {
    pub(crate) ledger: Ledger,
    pub(crate) settings: Settings,
}

#[async_trait]
impl TermsSource for PoolTerms {
    async fn terms(
        &self,
        pool: &PoolId,
        now: RegistryTime,
    ) -> Result<Option<Terms>, seatkeeper_ledger::Error> {
        let Self { ledger, settings } = self;
        match pool.kind {
            PoolKind::License => {
                let Ok(id) = pool.name.parse() else { return Ok(None) };
                let license = ledger.license(&pool.tenant, id).await?;
                Ok(license.map(|license| terms_of(&license, &settings.licenses)))
            }
            PoolKind::Subscriber => {
                let user = UserId::new(Arc::clone(&pool.name));
                let subscriber = ledger.subscriber(&pool.tenant, &user).await?;
                let ttl_default = Span::from_secs(settings.devices.ttl_seconds);
                Ok(Some(subscriber.entitled(now, ttl_default).terms))
            }
            PoolKind::Capacity => Ok(Some(capacity_terms(&settings.capacities))),
        }
    }
}
