//! Policies of licenses for their clients, for the answers to heartbeats. A heartbeat never waits for the ledger: an
//! unknown policy is read in the background, and a later heartbeat tells the policy.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use seatkeeper_core::{PoolId, TenantId};
use seatkeeper_engine::{Progress, Worker};
use seatkeeper_ledger::licenses::{License, LicenseId, Reacquire};
use tokio::sync::Notify;

use super::Entitlements;
use super::memory::{Memory, Reading};

/// Capacity of the cache, in licenses.
const POLICIES_REMEMBERED_MAX: usize = 10_000;

/// Lifetime of a cached policy whose invalidation is lost. The lifetime is longer than most heartbeat intervals, so
/// that few heartbeats cause a read.
const REMEMBERED_FOR: Duration = Duration::from_secs(600);

/// Capacity of the queue of reads. Past the capacity a read is dropped, and a later heartbeat queues the read again.
const WANTED_MAX: usize = 1_024;

/// Pause after a failed read. A later heartbeat queues the license again.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// The policy of a license for its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientPolicy {
    /// The time a client goes on without a session while the server is unreachable, in seconds.
    pub(crate) grace_seconds: u32,
    /// The policy after the loss of a seat.
    pub(crate) reacquire: Reacquire,
}

impl ClientPolicy {
    pub(crate) fn from_license(license: &License) -> Self {
        Self { grace_seconds: license.grace_seconds, reacquire: license.reacquire }
    }
}

/// The licenses whose policies are known to this node.
pub(super) struct ClientPolicies {
    remembered: Memory<LicenseId, License>,
    /// Licenses to read, each at most once.
    wanted: Mutex<VecDeque<(TenantId, LicenseId)>>,
    has_wanted: Notify,
}

impl ClientPolicies {
    pub(super) fn new() -> Self {
        Self {
            remembered: Memory::new(POLICIES_REMEMBERED_MAX, REMEMBERED_FOR),
            wanted: Mutex::new(VecDeque::new()),
            has_wanted: Notify::new(),
        }
    }

    /// Returns the policy of the license behind `pool`. Returns `None` for an unknown policy, and queues a read.
    pub(super) fn of_pool(&self, pool: &PoolId) -> Option<ClientPolicy> {
        let id = pool.name.parse().ok()?;
        let known = self.known(id);
        if known.is_none() {
            self.want(&pool.tenant, id);
        }
        known.map(|license| ClientPolicy::from_license(&license))
    }

    /// Returns a license, if this node knows the license.
    pub(super) fn known(&self, id: LicenseId) -> Option<Arc<License>> {
        self.remembered.get(&id)
    }

    /// Begins a read of a license from the ledger.
    pub(super) fn reading(&self) -> Reading {
        self.remembered.reading()
    }

    /// Stores a license that was read, unless an invalidation has happened since [`Self::reading`].
    pub(super) fn remember(&self, reading: Reading, license: &Arc<License>) {
        self.remembered.remember(reading, license.id, license);
    }

    /// Invalidates the policy of a changed license. A policy that was known is read again at once.
    pub(super) fn forget(&self, tenant: &TenantId, id: LicenseId) {
        let was_known = self.remembered.get(&id).is_some();
        self.remembered.forget_one(&id);
        if was_known {
            self.want(tenant, id);
        }
    }

    /// Invalidates every policy.
    pub(super) fn forget_all(&self) {
        self.remembered.forget(|_, _| false);
    }

    fn want(&self, tenant: &TenantId, id: LicenseId) {
        let mut wanted = self.wanted.lock();
        let is_wanted = wanted.iter().any(|(_, other)| *other == id);
        if !is_wanted && wanted.len() < WANTED_MAX {
            wanted.push_back((tenant.clone(), id));
            self.has_wanted.notify_one();
        }
    }
}

/// A worker that reads queued policies from the ledger, one after another.
pub(crate) struct PolicyReader(pub(crate) Arc<Entitlements>);

#[async_trait]
impl Worker for PolicyReader {
    type Error = Infallible;

    fn name(&self) -> &'static str {
        "client-policies"
    }

    fn rest(&self) -> Duration {
        REMEMBERED_FOR
    }

    async fn activate(&self) -> Result<Progress, Self::Error> {
        let policies = &self.0.licenses.policies;
        // Taken off the queue before the read: an invalidation during the read queues the license again.
        let Some((tenant, id)) = policies.wanted.lock().pop_front() else { return Ok(Progress::Idle) };
        if let Err(error) = self.0.licenses.read_policy(&tenant, id).await {
            let causes = seatkeeper_engine::with_causes(&error);
            tracing::debug!(license = %id, %causes, "reading a license failed: heartbeats leave its policy out");
            return Ok(Progress::Defer(PAUSE_AFTER_FAILURE));
        }
        Ok(Progress::More)
    }

    async fn woken(&self) {
        self.0.licenses.policies.has_wanted.notified().await;
    }
}
