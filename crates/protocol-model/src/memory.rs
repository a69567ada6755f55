//! The memory of a registry. Every call is a single atomic step.

use crate::ledger::{Change, Event, Ledger};
use crate::{Client, Clients, only};

/// The bucket's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Missing,
    Rebuilding { epoch: u8 },
    Serving { epoch: u8, identity: u8 },
}

/// The bucket's memory on a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Memory {
    pub(crate) key: Key,
    /// `true` if the pool is open. Otherwise the fields below are meaningless.
    pub(crate) open: bool,
    pub(crate) seq: u8,
    pub(crate) live: Clients,
    /// Clients renewed later at a different server.
    pub(crate) told_elsewhere: Clients,
    pub(crate) journal: Vec<Event>,
}

impl Memory {
    /// An empty memory.
    pub(crate) const LOST: Self =
        Self { key: Key::Missing, open: false, seq: 0, live: 0, told_elsewhere: 0, journal: Vec::new() };

    /// The epoch in the key; 0 if the key is missing.
    pub(crate) fn epoch(&self) -> u8 {
        match self.key {
            Key::Missing => 0,
            Key::Rebuilding { epoch } | Key::Serving { epoch, .. } => epoch,
        }
    }

    /// Returns `true` if a rebuild for `epoch` is in progress.
    pub(crate) fn is_rebuilding(&self, epoch: u8) -> bool {
        self.key == Key::Rebuilding { epoch }
    }

    /// Opens a closed pool from the ledger.
    pub(crate) fn open(&mut self, ledger: &Ledger) {
        if !self.open {
            self.fill(ledger.seq(), ledger.live());
        }
    }

    /// Replaces the pool by these sessions with full TTLs, and empties the journal.
    pub(crate) fn fill(&mut self, seq: u8, live: Clients) {
        *self = Self { key: self.key, open: true, seq, live, told_elsewhere: 0, journal: Vec::new() };
    }

    /// Returns `true` if the client's session is live in the memory.
    pub(crate) fn has(&self, client: Client) -> bool {
        self.live & only(client) != 0
    }

    /// Admits a client, and journals the admission under `epoch`.
    pub(crate) fn admit(&mut self, client: Client, epoch: u8) {
        self.live |= only(client);
        self.record(Change::Admitted(client), epoch);
    }

    /// Expires a client's session, and journals the end under `epoch`.
    pub(crate) fn expire(&mut self, client: Client, epoch: u8) {
        self.live &= !only(client);
        self.record(Change::Ended(client), epoch);
    }

    /// Forgets acknowledged events.
    pub(crate) fn acknowledge(&mut self, batch: &[Event]) {
        self.journal.retain(|event| !batch.contains(event));
    }

    fn record(&mut self, change: Change, epoch: u8) {
        self.seq += 1;
        self.journal.push(Event { seq: self.seq, epoch, change });
    }
}
