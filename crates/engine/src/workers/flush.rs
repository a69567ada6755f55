//! Flushes the latest heartbeats to the ledger: a session's record shows its last heartbeat. Expiry never
//! depends on a flush.

use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use seatkeeper_core::{Bucket, RegistryTime};
use seatkeeper_ledger::Ledger;

use crate::backend::Backend;
use crate::error::Error;
use crate::worker::{Progress, Worker};

/// The number of collected heartbeats that triggers a write.
const FLUSH_HEARTBEATS_MAX: usize = 4_096;

/// The worker that flushes the heartbeats of a backend.
pub(crate) struct Flush {
    backend: Backend,
    ledger: Ledger,
    interval: Duration,
    /// The ledger has each bucket's heartbeats up to this time, by the clock of the bucket's server. No `await` happens
    /// while this lock is held.
    flushed_until: Mutex<Vec<RegistryTime>>,
}

impl Flush {
    /// Returns the worker that flushes the heartbeats after `since`.
    pub(crate) fn new(backend: Backend, ledger: Ledger, interval: Duration, since: RegistryTime) -> Self {
        let flushed_until = Bucket::all().map(|_| since).collect();
        Self { backend, ledger, interval, flushed_until: Mutex::new(flushed_until) }
    }
}

#[async_trait]
impl Worker for Flush {
    type Error = Error;

    fn name(&self) -> &'static str {
        "flush"
    }

    fn rest(&self) -> Duration {
        self.interval
    }

    async fn activate(&self) -> Result<Progress, Error> {
        if !self.backend.serves_any() {
            return Ok(Progress::Idle);
        }
        let mut until = self.flushed_until.lock().clone();
        let mut renewed = Vec::new();
        for (bucket, until) in Bucket::all().zip(&mut until) {
            let of_bucket = self.backend.registry.renewed_since(bucket, *until).await?;
            *until = of_bucket.iter().map(|heartbeat| heartbeat.at).fold(*until, RegistryTime::max);
            renewed.extend(of_bucket);
            if renewed.len() >= FLUSH_HEARTBEATS_MAX {
                self.ledger.flush_heartbeats(&renewed).await?;
                renewed.clear();
            }
        }
        self.ledger.flush_heartbeats(&renewed).await?;
        *self.flushed_until.lock() = until;
        Ok(Progress::Idle)
    }
}
