//! What happened in a storm.

use std::collections::BTreeMap;

use serde::Serialize;

/// How often what happened. A storm in which something never happened has not tested it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Statistics {
    /// Rounds that were played to their end.
    pub rounds: u64,
    /// Sessions that began, as answered.
    pub acquired: u64,
    /// Claims that were given the holder's own session again.
    pub resumed: u64,
    /// Sessions that were evicted, as answered.
    pub evicted: u64,
    /// Grants after which every seat was taken.
    pub filled: u64,
    /// Claims that found the pool full.
    pub denied: u64,
    /// Heartbeats of live sessions.
    pub renewed: u64,
    /// Heartbeats that were told that the session was over.
    pub over: u64,
    /// Releases that were answered.
    pub released: u64,
    /// Changes of a pool's limit.
    pub changed: u64,
    /// Clients that stopped while they held a seat.
    pub crashed: u64,
    /// Answers that their clients never looked at.
    pub unheard: u64,
    /// Requests whose connection was torn down before the answer.
    pub torn: u64,
    /// Answers that the API does not give, by status, and requests without an answer, by failure.
    pub errors: BTreeMap<String, u64>,
}

impl Statistics {
    /// Adds another storm's, or another part's.
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
