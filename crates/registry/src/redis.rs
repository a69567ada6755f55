//! The registry of many nodes: live sessions in Redis or Valkey.
//!
//! Each step is one script, hence atomic, and one round trip; the scripts (`redis/scripts`) are the rule of
//! `seatkeeper-core` once more, and the model test holds them to it. Pools are spread over buckets; all that changes
//! together is in one bucket, and so in one slot of a cluster. Time is the server's. What a server may have lost shows in
//! the epoch and the identity at the head of each bucket: see `docs/failover.md`.
//!
//! A step has three parts: build a call (`call.rs`), send it together with others (`send.rs`), read the reply (`reply.rs`).
//! To add a step: a script in a file of its own, its line in `scripts.rs`, and a method that names its arguments and
//! reads its reply.

mod backlog;
mod call;
mod claim;
mod codec;
mod expire;
mod find;
mod head;
mod journal;
mod keys;
mod lease;
mod pools;
mod rebuild;
mod renewals;
mod reply;
mod roll_call;
mod scripts;
mod send;
mod sessions;
mod settings;
mod slots;
mod survey;
mod sweep;
mod whereabouts;

use std::sync::Arc;

use parking_lot::Mutex;
use seatkeeper_redis::Servers;
use tokio::time::Instant;

use crate::reckoning::Reckoning;
use crate::{ClockSteps, Epochs};
use backlog::Backlog;
use find::Searches;
use keys::AllKeys;
use renewals::Renewals;
pub use roll_call::{RollCall, Sighting};
use send::Batchers;
pub use settings::Settings;
use slots::BucketSlots;
use survey::Surveys;
use whereabouts::Remembered;
pub use whereabouts::{FindSession, Found, NoRecord};

/// Live sessions in Redis.
pub struct RedisRegistry {
    requests: Batchers,
    /// For reading and acknowledging the journals.
    journals: Batchers,
    settings: Settings,
    epochs: Arc<Epochs>,
    finder: Arc<dyn FindSession>,
    keys: AllKeys,
    slots: BucketSlots,
    backlog: Backlog,
    surveys: Surveys,
    /// When Redis was last told what is on record.
    acknowledged: Mutex<Option<Instant>>,
    renewals: Renewals,
    remembered: Remembered,
    searches: Searches,
    reckoning: Reckoning,
}

impl RedisRegistry {
    /// Creates the registry on these servers. Serves the buckets in the epochs of `epochs`, and asks `finder` for sessions that
    /// other nodes admitted. Must be called in a runtime.
    pub fn new(
        servers: Servers,
        settings: Settings,
        epochs: Arc<Epochs>,
        finder: Arc<dyn FindSession>,
    ) -> Self {
        Self {
            requests: Batchers::for_requests(servers.clone()),
            journals: Batchers::for_journals(servers),
            keys: AllKeys::new(),
            slots: BucketSlots::new(),
            backlog: Backlog::new(),
            surveys: Surveys::default(),
            acknowledged: Mutex::new(None),
            renewals: Renewals::new(),
            reckoning: Reckoning::default(),
            remembered: Remembered::new(settings.sessions_remembered_max),
            searches: Searches::new(),
            settings,
            epochs,
            finder,
        }
    }

    /// Reads the journals over these connections to the same servers. Must be called in the runtime where they are read:
    /// what is busy in another one then does not hold their events up.
    #[must_use]
    pub fn with_journals_over(mut self, servers: Servers) -> Self {
        self.journals = Batchers::for_journals(servers);
        self
    }

    /// Returns the steps of the servers' clocks that this node has seen.
    pub fn clock_steps(&self) -> &Arc<ClockSteps> {
        &self.surveys.clock_steps
    }
}
