//! A registry that several nodes share, and what keeps it in step with the ledger.

use std::sync::Arc;
use std::time::Duration;

use ::redis::{ConnectionAddr, ErrorKind, IntoConnectionInfo as _};
use async_trait::async_trait;
use seatkeeper_core::{Authority, SessionId};
use seatkeeper_ledger::{BucketMode, Ledger};
use seatkeeper_registry::Epochs;
use seatkeeper_registry::redis::{
    self, Address, Deployment, FindSession, Found, Password, RedisRegistry, Tls,
};

use super::StartError;
use crate::engine::Commits;
use crate::failover::{Bearings, Confirm, Needs, Presence, Probe, Reach, Rebuilder};
use crate::settings::Settings;
use crate::workers::Crew;

/// How long a node waits at its start for the buckets to be served. Then it listens all the same, and answers 503.
const SERVED_WAIT_MAX: Duration = Duration::from_secs(10);

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
    /// The Redis at `url`.
    pub(super) fn new(settings: &Settings, url: &str, ledger: &Ledger) -> Result<Self, StartError> {
        let epochs = Arc::new(Epochs::default());
        let finder = Arc::new(OnRecord(ledger.clone()));
        let registry =
            Arc::new(RedisRegistry::new(redis_settings(settings, url)?, Arc::clone(&epochs), finder));
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

fn redis_settings(settings: &Settings, url: &str) -> Result<redis::Settings, StartError> {
    let info = url.into_connection_info().map_err(StartError::Shared)?;
    let redis = info.redis_settings();
    let (ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. }) = info.addr() else {
        return Err(StartError::Shared(
            (ErrorKind::InvalidClientConfig, "a Redis has a host and a port").into(),
        ));
    };
    let address = Address { host: host.clone(), port: *port };
    let journal_events_max = usize::try_from(settings.registry.journal_events_max).unwrap_or(usize::MAX);
    Ok(redis::Settings {
        username: redis.username().map(str::to_owned),
        password: redis.password().map_or(Password::None, |password| Password::Text(password.to_owned())),
        tls: matches!(info.addr(), ConnectionAddr::TcpTls { .. }).then(Tls::default),
        journal_events_max,
        ..redis::Settings::new(Deployment::Standalone(address))
    })
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
