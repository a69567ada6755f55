//! The registry in PostgreSQL: live sessions in tables that all nodes share, changed under row locks.
//!
//! The rule decides here, in the node: a step looks at the pool, decides, and writes what changed together with its
//! events. Whoever writes holds the row of the bucket; a step that looked before it had the row fails if anything has
//! changed since, and looks again with the row in its hands. A heartbeat of a session that is not over is one
//! statement and holds nothing but that session. One clock decides, the database's, within its lease
//! (`postgres/clock.rs`).

mod backlog;
mod claim;
mod clock;
mod connect;
mod fault;
mod from_row;
mod journal;
mod look;
mod pools;
mod rebuild;
mod repair_clock;
mod row;
mod section;
mod sessions;
mod step;
mod sweep;
mod unreadable;
mod write;

use std::sync::Arc;

use seatkeeper_core::{BUCKETS, Region};
use seatkeeper_postgres::{Connections, PostgresUrl};
use tokio::sync::Mutex;

use crate::reckoning::Reckoning;
use crate::{Epochs, Error};
use backlog::Backlog;
pub use clock::PostgresClock;
pub use repair_clock::{RegistryRepair, repair_clock};
use section::Section;

/// Live sessions in PostgreSQL.
pub struct PostgresRegistry {
    connections: Connections,
    turns: Box<[Mutex<()>]>,
    backlog: Backlog,
    region: Region,
    section: Section,
    journal_events_max: usize,
    clock: Arc<PostgresClock>,
    reckoning: Reckoning,
}

impl PostgresRegistry {
    /// A node's way to the registry in the database at `url`, over at most `connections_max` connections. A bucket is
    /// served in the epoch that is known of it, and takes no admission while `journal_events_max` events wait in the
    /// journal.
    pub async fn connect(
        url: &PostgresUrl,
        connections_max: u32,
        epochs: Arc<Epochs>,
        region: Region,
        journal_events_max: usize,
    ) -> Result<Self, Error> {
        let connections = connect::connections(url, connections_max)?;
        connect::migrate(&connections).await.map_err(|error| Error::Unavailable(Box::new(error)))?;
        let clock = Arc::new(PostgresClock::new(connections.clone()));
        Ok(Self::of_section(Section::Rebuilt(epochs), connections, clock, region, journal_events_max))
    }

    /// Beside this registry, and over the same connections, another one in the same database, which is never rebuilt:
    /// for sessions that last without heartbeats. The two have no session in common. Its receipts are all of one epoch;
    /// its events bear the epoch in `epochs`, for they go on record whatever epoch their bucket is in.
    pub fn lasting(&self, epochs: Arc<Epochs>) -> Self {
        let (connections, clock) = (self.connections.clone(), Arc::clone(&self.clock));
        Self::of_section(Section::Lasting(epochs), connections, clock, self.region, self.journal_events_max)
    }

    /// Returns the clock of the database's server, which all registries over these connections share.
    pub fn clock(&self) -> &Arc<PostgresClock> {
        &self.clock
    }

    fn of_section(
        section: Section,
        connections: Connections,
        clock: Arc<PostgresClock>,
        region: Region,
        journal_events_max: usize,
    ) -> Self {
        let turns = (0..BUCKETS).map(|_| Mutex::new(())).collect();
        Self {
            connections,
            turns,
            backlog: Backlog::new(),
            region,
            section,
            journal_events_max,
            clock,
            reckoning: Reckoning::default(),
        }
    }
}
