//! Shared registry: live sessions in Redis or Valkey.
//!
//! Each step is one Lua script (`redis/scripts`), hence atomic and one round trip. The scripts implement the
//! rule of `seatkeeper-core` a second time, and the model test compares both. A step changes keys of a single
//! bucket, hence of a single slot of a cluster. The server's clock decides. A server that lost data is
//! recognised by epoch and identity in the head of each bucket: see `docs/failover.md`.
//!
//! A step has three parts: build a call (`call.rs`), send calls in batches (`send.rs`), read the reply
//! (`reply.rs`). A new step takes a script file, a line in `scripts.rs`, and a method that adds the arguments
//! and reads the reply.

mod admissions;
mod backlog;
mod call;
mod claim;
mod clock;
mod codec;
mod entries;
mod expire;
mod find;
mod head;
mod heartbeat_buffer;
mod journal;
mod keys;
mod lease;
mod pools;
mod rebuild;
mod reply;
mod roll_call;
mod scripts;
mod send;
mod session_location;
mod sessions;
mod settings;
mod slots;
mod survey;
mod sweep;

use std::sync::Arc;

use parking_lot::Mutex;
use seatkeeper_redis::Servers;
use tokio::time::Instant;

use crate::unreadable::UnreadableEntries;
use crate::{ClockSteps, Epochs, Store};
use admissions::AdmissionsRead;
use backlog::Backlog;
use clock::ClockEstimates;
use find::Searches;
use heartbeat_buffer::HeartbeatBuffer;
use keys::AllKeys;
pub use roll_call::{RollCall, Sighting};
use send::Batchers;
use session_location::Remembered;
pub use session_location::{NoRecord, SearchResult, SessionLocator};
pub use settings::Settings;
use slots::BucketSlots;
use survey::Surveys;

/// A registry of live sessions in Redis.
pub struct RedisRegistry {
    requests: Batchers,
    /// Batchers for reading and acknowledging the journals.
    journals: Batchers,
    settings: Settings,
    epochs: Arc<Epochs>,
    locator: Arc<dyn SessionLocator>,
    keys: AllKeys,
    slots: BucketSlots,
    backlog: Backlog,
    unreadable: UnreadableEntries,
    surveys: Surveys,
    /// Time of the latest round of acknowledgements to Redis.
    acknowledged: Mutex<Option<Instant>>,
    heartbeat_buffer: HeartbeatBuffer,
    remembered: Remembered,
    searches: Searches,
    admissions_read: AdmissionsRead,
    clock_estimates: ClockEstimates,
}

impl RedisRegistry {
    /// Creates the registry on `servers`. Serves the buckets in the epochs of `epochs`, and asks `locator` for
    /// the pools of sessions that this node has not seen. Must be called in a runtime.
    pub fn new(
        servers: Servers,
        settings: Settings,
        epochs: Arc<Epochs>,
        locator: Arc<dyn SessionLocator>,
    ) -> Self {
        Self {
            requests: Batchers::for_requests(servers.clone()),
            journals: Batchers::for_journals(servers),
            keys: AllKeys::new(),
            slots: BucketSlots::new(),
            backlog: Backlog::new(),
            unreadable: UnreadableEntries::new(Store::Redis),
            surveys: Surveys::default(),
            acknowledged: Mutex::new(None),
            heartbeat_buffer: HeartbeatBuffer::new(),
            clock_estimates: ClockEstimates::default(),
            remembered: Remembered::new(settings.sessions_remembered_max),
            searches: Searches::new(),
            admissions_read: AdmissionsRead::new(),
            settings,
            epochs,
            locator,
        }
    }

    /// Reads the journals over separate connections to the same servers, so that a long read delays no request.
    #[must_use]
    pub fn with_journals_over(mut self, servers: Servers) -> Self {
        self.journals = Batchers::for_journals(servers);
        self
    }

    /// Returns the steps of the servers' clocks seen by this node.
    pub fn clock_steps(&self) -> &Arc<ClockSteps> {
        &self.surveys.clock_steps
    }
}
