//! The heartbeat buffer: the latest heartbeats seen by this node, until they are on record. Redis keeps no
//! index of heartbeats, because every heartbeat would pay for the index.

use std::collections::HashMap;

use parking_lot::Mutex;
use seatkeeper_core::{Bucket, LatestHeartbeat, RegistryTime, SessionId, Span};

/// Bound of buffered heartbeats per bucket. Beyond the bound, heartbeats older than [`KEPT`] are dropped,
/// then new sessions are skipped, and the recorded last heartbeat is a little too early.
const RENEWALS_PER_BUCKET_MAX: usize = 16_384;

/// Heartbeats this much older than the latest query are dropped.
const KEPT: Span = Span::from_secs(5);

/// The last heartbeats of the sessions of each bucket.
#[derive(Debug)]
pub(super) struct HeartbeatBuffer(Box<[Mutex<HashMap<SessionId, LatestHeartbeat>>]>);

impl HeartbeatBuffer {
    pub(super) fn new() -> Self {
        Self(Bucket::all().map(|_| Mutex::default()).collect())
    }

    pub(super) fn note(&self, heartbeat: LatestHeartbeat) {
        let LatestHeartbeat { session: id, at, .. } = heartbeat;
        let mut heartbeat_buffer = self.bucket(id.bucket()).lock();
        if heartbeat_buffer.len() >= RENEWALS_PER_BUCKET_MAX && !heartbeat_buffer.contains_key(&id) {
            heartbeat_buffer.retain(|_, renewed| renewed.at + KEPT > at);
            if heartbeat_buffer.len() >= RENEWALS_PER_BUCKET_MAX {
                return;
            }
        }
        let latest = heartbeat_buffer.entry(id).or_insert(heartbeat);
        if latest.at <= at {
            *latest = heartbeat;
        }
    }

    pub(super) fn forget(&self, id: SessionId) {
        self.bucket(id.bucket()).lock().remove(&id);
    }

    /// Returns the heartbeats after `since`. Later queries never ask for older heartbeats.
    pub(super) fn since(&self, bucket: Bucket, since: RegistryTime) -> Vec<LatestHeartbeat> {
        let mut heartbeat_buffer = self.bucket(bucket).lock();
        heartbeat_buffer.retain(|_, renewed| renewed.at + KEPT > since);
        heartbeat_buffer.values().filter(|renewed| renewed.at > since).copied().collect()
    }

    fn bucket(&self, bucket: Bucket) -> &Mutex<HashMap<SessionId, LatestHeartbeat>> {
        &self.0[usize::from(bucket.number())]
    }
}
