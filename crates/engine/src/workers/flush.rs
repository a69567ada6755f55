//! Writes the latest heartbeats down, so that a record of a session says when it was last heard of.

use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use seatkeeper_core::{Bucket, RegistryTime};
use seatkeeper_ledger::Ledger;

use crate::backend::Backend;
use crate::error::Error;
use crate::worker::{Progress, Worker};

/// Heartbeats that are collected, over as many buckets as it takes, before they are written down.
const FLUSH_HEARTBEATS_MAX: usize = 4_096;

pub(crate) struct Flush {
    backend: Backend,
    ledger: Ledger,
    interval: Duration,
    /// Heartbeats until then are written down. Nothing awaits while this lock is held.
    flushed_until: Mutex<RegistryTime>,
}

impl Flush {
    /// Writes down the heartbeats after `since`.
    pub(crate) fn new(backend: Backend, ledger: Ledger, interval: Duration, since: RegistryTime) -> Self {
        Self { backend, ledger, interval, flushed_until: Mutex::new(since) }
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
        let now = self.backend.registry.now().await?;
        let since = *self.flushed_until.lock();
        let mut renewed = Vec::new();
        for bucket in Bucket::all() {
            renewed.extend(self.backend.registry.renewed_since(bucket, since).await?);
            if renewed.len() >= FLUSH_HEARTBEATS_MAX {
                self.ledger.flush_heartbeats(&renewed).await?;
                renewed.clear();
            }
        }
        self.ledger.flush_heartbeats(&renewed).await?;
        *self.flushed_until.lock() = now;
        Ok(Progress::Idle)
    }
}
