//! Entitlements set the limits of pools: licenses, subscriptions and plans from the ledger, cached on each
//! node. A change invalidates the caches of every node, and a cached entry expires even if the invalidation
//! is lost.
//!
//! A new kind of entitlement gets a module beside `licenses.rs` and an arm in `PoolTerms`.

mod capacities;
mod client_policies;
mod groups;
mod invalidation;
mod licenses;
mod local_broadcast;
mod memory;
mod subscribers;

use async_trait::async_trait;
use seatkeeper_core::{PoolId, PoolKind, RegistryTime, Span, Terms, UserId};
use seatkeeper_engine::TermsSource;
use seatkeeper_ledger::Ledger;

use crate::settings::Settings;
pub(crate) use capacities::capacity_terms;
pub(crate) use client_policies::PolicyReader;
pub(crate) use groups::group_terms;
pub(crate) use invalidation::{EndTeller, EndedAbroad, Listener, NoticeReader, Others};
pub(crate) use licenses::{Licenses, terms_of};
pub(crate) use local_broadcast::{Changed, Listening};
pub(crate) use subscribers::{DEVICES_MAX, Subscribers};

/// The entitlement caches of this node, with the channel that invalidates the caches of the other nodes.
pub(crate) struct Entitlements {
    pub(crate) licenses: Licenses,
    pub(crate) subscribers: Subscribers,
    /// `None` on a server without peer nodes.
    pub(crate) others: Option<Others>,
}

impl Entitlements {
    /// Invalidates cached entitlements on every node after a change in the ledger.
    pub(crate) async fn changed(&self, changed: Changed) {
        // The shared cache is invalidated first, because the nodes refill their local caches from the shared
        // cache.
        self.subscribers.forget_shared(&changed).await;
        self.forget(changed.clone());
        if let Some(others) = &self.others
            && let Err(error) = invalidation::tell(others, &changed).await
        {
            let causes = error.with_causes();
            tracing::warn!(
                %causes,
                "publishing a change failed: other nodes keep the old limits until their caches expire, and streams of \
                 groups on other nodes tell the change up to 10 s late"
            );
        }
    }

    /// Invalidates the local caches after a change in the ledger.
    fn forget(&self, changed: Changed) {
        self.licenses.forget(&changed);
        self.subscribers.forget(changed);
    }
}

/// A `TermsSource` that reads a pool's terms from the ledger. The settings supply the defaults, and the whole
/// terms of a capacity.
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
                let user = UserId::new(pool.name.clone());
                let subscriber = ledger.subscriber(&pool.tenant, &user).await?;
                let ttl_default = Span::from_secs(settings.devices.ttl_seconds);
                Ok(Some(subscriber.entitled(now, ttl_default).terms))
            }
            PoolKind::Capacity => Ok(Some(capacity_terms(&settings.capacities))),
            PoolKind::Group => {
                let ttl_default = Span::from_secs(settings.devices.ttl_seconds);
                groups::recorded_terms(ledger, pool, now, ttl_default).await
            }
        }
    }
}
