//! A registry that several nodes share, and what keeps it in step with the ledger.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use seatkeeper_core::{Authority, SessionId};
use seatkeeper_ledger::{BucketMode, Ledger};
use seatkeeper_registry::Epochs;
use seatkeeper_registry::redis::{self, FindSession, Found, RedisRegistry, Servers};

use super::StartError;
use crate::engine::Commits;
use crate::failover::{Bearings, Confirm, Needs, Presence, Probe, Reach, Rebuilder};
use crate::settings::Settings;
use crate::workers::Crew;

/// How long a node waits at its start for the buckets to be served. Then it listens all the same, and answers 503.
const SERVED_WAIT_MAX: Duration = Duration::from_secs(10);

/// How long it waits for a server that may be unfit.
const FITNESS_WAIT_MAX: Duration = Duration::from_secs(2);

/// How often it looks.
const SERVED_LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// What serves, and this node among others.
pub(super) struct Shared {
    pub(super) registry: Arc<RedisRegistry>,
    pub(super) bearings: Arc<Bearings>,
    pub(super) presence: Arc<Presence>,
    reach: Arc<Reach>,
}

impl Shared {
    /// These servers, if they are fit for it. Those that cannot be reached are given the benefit of the doubt.
    pub(super) async fn new(
        settings: &Settings,
        servers: Servers,
        ledger: &Ledger,
    ) -> Result<Self, StartError> {
        if let Some(why) = servers.unfit(FITNESS_WAIT_MAX).await.into_iter().next() {
            return Err(StartError::Unfit(why));
        }
        let epochs = Arc::new(Epochs::default());
        let finder = Arc::new(OnRecord(ledger.clone()));
        let journal_events_max = usize::try_from(settings.registry.journal_events_max).unwrap_or(usize::MAX);
        let kept = redis::Settings { journal_events_max, ..redis::Settings::default() };
        let registry = Arc::new(RedisRegistry::new(servers, kept, Arc::clone(&epochs), finder));
        let reach = Arc::new(Reach::default());
        let name = settings.server.listen.to_string();
        Ok(Self {
            registry,
            bearings: Arc::new(Bearings::shared(epochs, Arc::clone(&reach))),
            presence: Arc::new(Presence::new(name, ledger.clone(), Arc::clone(&reach))),
            reach,
        })
    }

    /// Starts what keeps registry and ledger in step, and waits until all is served, but not for long.
    pub(super) async fn start(
        &self,
        settings: &Settings,
        ledger: &Ledger,
        commits: &Arc<Commits>,
        upkeep: &Crew,
    ) {
        let needs = Arc::new(Needs::default());
        upkeep.start(Confirm {
            ledger: ledger.clone(),
            bearings: Arc::clone(&self.bearings),
            commits: Arc::clone(commits),
            presence: Arc::clone(&self.presence),
        });
        let (bearings, reach) = (Arc::clone(&self.bearings), Arc::clone(&self.reach));
        let registry = Arc::clone(&self.registry);
        upkeep.start(Probe::new(registry, bearings, reach, Arc::clone(&needs), BucketMode::Deny));
        upkeep.start(Rebuilder {
            registry: Arc::clone(&self.registry) as _,
            ledger: ledger.clone(),
            bearings: Arc::clone(&self.bearings),
            needs: Arc::clone(&needs),
            settings: settings.clone(),
            presence: Arc::clone(&self.presence),
        });
        let served = async {
            while !needs.are_met() {
                tokio::time::sleep(SERVED_LOOK_INTERVAL).await;
            }
        };
        if tokio::time::timeout(SERVED_WAIT_MAX, served).await.is_err() {
            tracing::error!("not all buckets are served yet; requests are answered 503 until they are");
        }
    }
}

/// Tells the pool of a session by the record.
struct OnRecord(Ledger);

#[async_trait]
impl FindSession for OnRecord {
    async fn find(&self, id: SessionId, _who: &Authority) -> Found {
        match self.0.session(id).await {
            Ok(Some(record)) => Found::In(record.pool, Some(record.session.holder)),
            Ok(None) => Found::NotOnRecord,
            Err(error) => Found::Unknown(Some(Box::new(error))),
        }
    }
}
