//! Derives the engine's settings from the server's settings.

use std::net::SocketAddr;
use std::time::Duration;

use rustix::system::uname;
use seatkeeper_core::Region;
use seatkeeper_engine::{RedisSettings, Settings as EngineSettings, SharedSettings, SharedStore, Topology};
use seatkeeper_ledger::Location;
use seatkeeper_ledger::buckets::BucketMode;
use seatkeeper_redis::Servers;

use crate::settings::{DevicesWhenDown, Settings, WhenDown, WhenHomeDown};

/// Returns the engine's settings. `ledger` is the location of the ledger; the registry shares the changes of its
/// password. `servers` is the Redis that nodes share, or `None`. `addr` is the address of the node's listener.
pub(super) fn engine_settings(
    settings: &Settings,
    ledger: &Location,
    servers: Option<Servers>,
    addr: SocketAddr,
) -> EngineSettings {
    let sweep_milliseconds = settings.registry.sweep_interval_milliseconds;
    EngineSettings {
        region: Region::new(settings.region.number),
        topology: topology(settings, ledger, servers, addr),
        journal_events_max: settings.registry.journal_events_max,
        commit_timeout: Duration::from_millis(settings.ledger.commit_timeout_milliseconds),
        heartbeat_flush_interval: Duration::from_secs(settings.ledger.heartbeat_flush_seconds),
        sweep_interval: (sweep_milliseconds > 0).then(|| Duration::from_millis(sweep_milliseconds)),
        admits_without_home: settings.region.when_home_down == WhenHomeDown::Allow,
    }
}

fn topology(settings: &Settings, ledger: &Location, servers: Option<Servers>, addr: SocketAddr) -> Topology {
    let postgres = match ledger {
        Location::Postgres(url) => Some(url.clone()),
        Location::Directory(_) => None,
    };
    let store = match (servers, postgres) {
        (Some(servers), standby) => SharedStore::Redis(RedisSettings {
            servers,
            standby,
            wait_replicas: settings.registry.wait_replicas,
            sessions_remembered_max: usize::try_from(settings.registry.sessions_remembered_max)
                .unwrap_or(usize::MAX),
        }),
        (None, Some(url)) if settings.registry.is_ledgers() => SharedStore::Postgres(url),
        (None, _) => return Topology::Embedded,
    };
    Topology::Shared(SharedSettings { node_name: node_name(addr), store, when_down: when_down(settings) })
}

/// Returns the name by which a person finds the process of a node: host, address of the listener, and process id. Nodes on
/// several hosts often listen on equal addresses.
fn node_name(addr: SocketAddr) -> String {
    let system = uname();
    format!("{}/{addr}/{}", system.nodename().to_string_lossy(), std::process::id())
}

/// Returns the mode of buckets during an outage of the registry.
fn when_down(settings: &Settings) -> BucketMode {
    match (settings.registry.when_down, settings.devices.when_down) {
        (WhenDown::Ledger, DevicesWhenDown::Deny) => BucketMode::Ledger,
        (WhenDown::Ledger, DevicesWhenDown::Allow) => BucketMode::Allow,
        (WhenDown::Deny, _) => BucketMode::Deny,
    }
}
