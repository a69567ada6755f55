//! Counts of the events in a storm.

use std::collections::BTreeMap;

use serde::Serialize;

/// Counts of each kind of event. A count of zero means that the storm has not tested that kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Statistics {
    /// Rounds played to their end.
    pub rounds: u64,
    /// New sessions, by the answers.
    pub acquired: u64,
    /// Claims answered with the holder's own session.
    pub resumed: u64,
    /// Evicted sessions, by the answers.
    pub evicted: u64,
    /// Grants that took the last free seat.
    pub filled: u64,
    /// Claims denied on a full pool.
    pub denied: u64,
    /// Heartbeats of live sessions.
    pub renewed: u64,
    /// Heartbeats answered as over.
    pub over: u64,
    /// Releases with an answer.
    pub released: u64,
    /// Changes of a pool's limit.
    pub changed: u64,
    /// Clients that stopped while holding a seat.
    pub crashed: u64,
    /// Answers ignored by their clients.
    pub unheard: u64,
    /// Requests with a connection torn down before the answer.
    pub torn: u64,
    /// Unexpected answers by status, and requests without an answer by failure.
    pub errors: BTreeMap<String, u64>,
}

impl Statistics {
    /// Adds the counts of another storm, or of another part of the same storm.
    pub fn add(&mut self, other: &Self) {
        self.rounds += other.rounds;
        self.acquired += other.acquired;
        self.resumed += other.resumed;
        self.evicted += other.evicted;
        self.filled += other.filled;
        self.denied += other.denied;
        self.renewed += other.renewed;
        self.over += other.over;
        self.released += other.released;
        self.changed += other.changed;
        self.crashed += other.crashed;
        self.unheard += other.unheard;
        self.torn += other.torn;
        for (error, count) in &other.errors {
            *self.errors.entry(error.clone()).or_default() += count;
        }
    }

    pub(super) fn error(&mut self, name: impl Into<String>) {
        *self.errors.entry(name.into()).or_default() += 1;
    }
}
