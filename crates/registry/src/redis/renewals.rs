//! The latest heartbeats that this node saw, until they are on record. Redis has no index of them, for every
//! heartbeat would have to keep it.

use std::collections::HashMap;

use parking_lot::Mutex;
use seatkeeper_core::{Bucket, RegistryTime, SessionId, Span};

/// Heartbeats of a bucket that are kept at most; past it, all but the latest are forgotten. A record then says a little
/// too early when its session was last heard of.
const RENEWALS_PER_BUCKET_MAX: usize = 16_384;

/// How much older than what was last asked for a heartbeat may be.
const KEPT: Span = Span::from_secs(5);

/// For each bucket, when its sessions were renewed.
#[derive(Debug)]
pub(super) struct Renewals(Box<[Mutex<HashMap<SessionId, RegistryTime>>]>);

impl Renewals {
    pub(super) fn new() -> Self {
        Self(Bucket::all().map(|_| Mutex::default()).collect())
    }

    pub(super) fn note(&self, id: SessionId, at: RegistryTime) {
        let mut renewals = self.of(id.bucket()).lock();
        if renewals.len() >= RENEWALS_PER_BUCKET_MAX && !renewals.contains_key(&id) {
            renewals.retain(|_, renewed| *renewed + KEPT > at);
            if renewals.len() >= RENEWALS_PER_BUCKET_MAX {
                return;
            }
        }
        let latest = renewals.entry(id).or_insert(at);
        *latest = at.max(*latest);
    }

    pub(super) fn forget(&self, id: SessionId) {
        self.of(id.bucket()).lock().remove(&id);
    }

    /// Those after `since`; older ones are not asked for again.
    pub(super) fn since(&self, bucket: Bucket, since: RegistryTime) -> Vec<(SessionId, RegistryTime)> {
        let mut renewals = self.of(bucket).lock();
        renewals.retain(|_, renewed| *renewed + KEPT > since);
        renewals.iter().filter(|&(_, &at)| at > since).map(|(&id, &at)| (id, at)).collect()
    }

    fn of(&self, bucket: Bucket) -> &Mutex<HashMap<SessionId, RegistryTime>> {
        &self.0[usize::from(bucket.number())]
    }
}
