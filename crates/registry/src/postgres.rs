//! Registry in PostgreSQL: live sessions in tables shared by all nodes, changed under row locks.
//!
//! The rule runs in the node. A step reads the pool, decides, and writes the changes together with the
//! events. Every write locks the bucket's row. A step that read without the lock (optimistic read) fails if
//! anything changed meanwhile, and is retried with the lock. A heartbeat of a live session is one statement,
//! and locks only the session. The database's clock decides, within its lease (`postgres/clock.rs`).

mod backlog;
mod claim;
mod clock;
mod connect;
mod copies;
mod entries;
mod fault;
mod from_row;
mod heartbeat_flow;
mod journal;
mod lasting;
mod limit;
mod pools;
mod read_pool;
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

use crate::clock_estimate::ClockEstimate;
use crate::unreadable::UnreadableEntries;
use crate::{Epochs, Error, Store};
use backlog::Backlog;
pub use clock::PostgresClock;
pub use connect::migrate;
use copies::Copies;
pub use lasting::{LastingFilling, LastingState, close_lasting};
pub use repair_clock::{RegistryRepair, repair_clock};
use section::Section;

/// A registry of live sessions in PostgreSQL.
pub struct PostgresRegistry {
    connections: Connections,
    copies: Arc<Copies>,
    turns: Box<[Mutex<()>]>,
    backlog: Backlog,
    unreadable: UnreadableEntries,
    region: Region,
    section: Section,
    journal_events_max: usize,
    clock: Arc<PostgresClock>,
    clock_estimate: ClockEstimate,
}

impl PostgresRegistry {
    /// Connects to the registry in the database at `url`, with at most `connections_max` connections. Serves
    /// each bucket in its epoch of `epochs`. A bucket admits no session while `journal_events_max` events
    /// wait in the journal.
    pub async fn connect(
        url: &PostgresUrl,
        connections_max: u32,
        epochs: Arc<Epochs>,
        region: Region,
        journal_events_max: usize,
    ) -> Result<Self, Error> {
        connect::migrate(url).await?;
        let copies = Arc::new(Copies::new());
        let connections = connect::connections(url, connections_max, &copies)?;
        let clock = Arc::new(PostgresClock::new(connections.clone()));
        let section = Section::Rebuilt(epochs);
        Ok(Self::of_section(section, connections, copies, clock, region, journal_events_max))
    }

    /// Returns a second registry in the same database, over the same connections, for sessions without
    /// heartbeats. The second registry is never rebuilt, and shares no session with the first. The receipts are of one
    /// epoch, until a copy of the database takes over. An event carries the epoch in `epochs` at the time of the read, so
    /// that the ledger accepts the event after a rebuild of the first.
    pub fn lasting(&self, epochs: Arc<Epochs>) -> Self {
        let (connections, clock) = (self.connections.clone(), Arc::clone(&self.clock));
        let (copies, region) = (Arc::clone(&self.copies), self.region);
        let section = Section::Lasting { epochs, copies: Arc::clone(&copies) };
        Self::of_section(section, connections, copies, clock, region, self.journal_events_max)
    }

    /// Returns the clock of the database's server, shared by all registries over these connections.
    pub fn clock(&self) -> &Arc<PostgresClock> {
        &self.clock
    }

    fn of_section(
        section: Section,
        connections: Connections,
        copies: Arc<Copies>,
        clock: Arc<PostgresClock>,
        region: Region,
        journal_events_max: usize,
    ) -> Self {
        let turns = (0..BUCKETS).map(|_| Mutex::new(())).collect();
        Self {
            connections,
            copies,
            turns,
            backlog: Backlog::new(),
            unreadable: UnreadableEntries::new(Store::PostgreSql),
            region,
            section,
            journal_events_max,
            clock,
            clock_estimate: ClockEstimate::default(),
        }
    }
}
