//! Fills a registry in the memory of this process from the ledger. The registry's clock never starts before
//! the latest time in the ledger.

use std::sync::Arc;
use std::time::Instant;

use futures_util::TryStreamExt;
use seatkeeper_core::{Region, RegistryTime, Span};
use seatkeeper_ledger::{Ledger, LivePool, Location};
use seatkeeper_registry::memory::MemoryRegistry;
use seatkeeper_registry::{Admission as _, Registry, TimeSource, postgres};

use super::StartError;
use crate::engine::ttl_after_takeover;
use crate::terms::TermsSource;
use crate::wall_clock;

/// The ledger's latest record may be ahead of the wall clock by this much: healthy clocks are set back by
/// less.
const BEHIND_TOLERATED: Span = Span::from_secs(60);

/// The wall clock may be ahead of the ledger's latest record by this much: a server may be down for a while.
const AHEAD_TOLERATED: Span = Span::from_secs(30 * 86_400);

/// Returns a registry of epoch `epoch` with every live session of the ledger, each with a full TTL. After a takeover, the
/// previous owner of the ledger may live on: sessions have a longer TTL where the previous owner may have promised more.
pub(super) async fn filled_registry(
    (region, epoch): (Region, u64),
    journal_events_max: usize,
    ledger: &Ledger,
    entitlements: &dyn TermsSource,
    clock: impl TimeSource,
    may_be_takeover: bool,
) -> Result<Arc<dyn Registry>, StartError> {
    let registry = MemoryRegistry::new(epoch, region, journal_events_max, clock);
    let (began, mut sessions) = (Instant::now(), 0);
    let mut pools = std::pin::pin!(ledger.live_sessions());
    while let Some(LivePool { pool, seq, sessions: mut live }) = pools.try_next().await? {
        sessions += live.len();
        // Takes the terms at the pool's latest heartbeat. An entitlement that ended during the downtime ends
        // its sessions at the proper time. Sessions admitted after that end have a later heartbeat.
        let heard = live.iter().map(|session| session.last_heartbeat).max().unwrap_or_default();
        let terms = entitlements.terms(&pool, heard).await?;
        // A session without heartbeats keeps the end that its user was told, whatever the setting is now.
        if may_be_takeover && pool.kind.has_heartbeats() {
            for session in &mut live {
                // From the TTL in force, not from the record: the flush records the longer TTL, and the TTL would grow with
                // each restart.
                let in_force = terms.map_or(session.ttl, |terms| terms.ttl);
                session.ttl = session.ttl.max(ttl_after_takeover(pool.kind, in_force));
            }
        }
        registry.open(&pool, seq, terms, live).await?;
    }
    tracing::info!(sessions, epoch, took_ms = began.elapsed().as_millis() as u64, "live sessions are back");
    Ok(Arc::new(registry))
}

/// Closes the registry of capacities in the database of `ledger`. Otherwise nodes that serve again would find capacities
/// that have ended in this engine's memory.
pub(super) async fn close_shared_capacities(ledger: &Ledger) -> Result<(), StartError> {
    let Location::Postgres(url) = ledger.location() else { return Ok(()) };
    match postgres::close_lasting(url).await? {
        0 => Ok(()),
        waiting => Err(StartError::CapacitiesWait { waiting }),
    }
}

/// Returns the start of the registry's clock: the wall clock, but never before the latest time in the ledger.
pub(super) fn first_time(recorded: RegistryTime) -> RegistryTime {
    let wall = wall_clock::registry_now();
    tell_of_wrong_time(wall, recorded);
    wall.max(recorded)
}

/// Logs an error if wall clock and ledger are too far apart for both to be right.
fn tell_of_wrong_time(wall: RegistryTime, recorded: RegistryTime) {
    if recorded > wall + BEHIND_TOLERATED {
        tracing::error!(
            ahead_ms = recorded.since(wall).as_millis(),
            "the ledger's latest record is dated after this host's time: registry time goes on from the record; if the \
             host's time is wrong, synchronise it by NTP and start again; if the record is wrong, stop the server and \
             run `seatkeeper repair clock`"
        );
    } else if recorded > RegistryTime::default() && wall > recorded + AHEAD_TOLERATED {
        tracing::error!(
            ahead_ms = wall.since(recorded).as_millis(),
            "this host's time is more than 30 days after the ledger's latest record: registry time goes on from the \
             host's; unless no server ran for that long, stop the server, synchronise the host's time by NTP, and run \
             `seatkeeper repair clock`"
        );
    }
}
