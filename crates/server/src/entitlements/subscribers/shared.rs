//! What was read of subscribers, kept for all nodes in Redis for a while, so that a node which a subscriber
//! comes to for the first time need not ask the ledger.
//!
//! What a node keeps here was read before it is kept, and may have changed in between. So each tenant has a
//! generation, which rises with its plans, and an entry whose subscription has changed is closed for as long
//! as it would have been kept: what was read before that finds no place.

use std::time::Duration;

use redis::aio::ConnectionManager;
use redis::{RedisResult, Script};
use seatkeeper_core::{TenantId, UserId};
use seatkeeper_ledger::Subscriber;

use crate::entitlements::Changed;
use crate::entitlements::bulletin::TELLING_MAX;

/// How long an entry counts, and how long it stays closed after a change.
const KEPT_SECONDS: u64 = 60;

/// How long a tenant's generation is known: for longer than what was read in an older one counts.
const GENERATION_SECONDS: i64 = 3_600;

/// The entries.
pub(super) struct Shared {
    redis: ConnectionManager,
    put: Script,
    patience: Duration,
}

/// What was found.
pub(super) enum Found {
    Subscriber(Subscriber),
    /// Nothing that counts, in this generation of the tenant's.
    Nothing(u64),
}

impl Shared {
    /// Redis has `patience` to say what it keeps, before the ledger is asked instead.
    pub(super) fn new(redis: ConnectionManager, patience: Duration) -> Self {
        Self { redis, put: Script::new(include_str!("shared/put.lua")), patience }
    }

    /// What is kept of a subscriber; none if Redis does not say.
    pub(super) async fn get(&self, tenant: &TenantId, user: &UserId) -> Option<Found> {
        let keys = (generation_key(tenant), entry_key(tenant, user));
        let mut redis = self.redis.clone();
        let asked = redis::cmd("MGET").arg(keys).take();
        let answer: RedisResult<(Option<u64>, Option<String>)> =
            tokio::time::timeout(self.patience, asked.query_async(&mut redis)).await.ok()?;
        let (generation, entry) = answer.inspect_err(unsaid).ok()?;
        let generation = generation.unwrap_or_default();
        let counts = entry.as_deref().and_then(|entry| entry.strip_prefix(&format!("{generation} ")));
        Some(counts.and_then(Subscriber::from_text).map_or(Found::Nothing(generation), Found::Subscriber))
    }

    /// Keeps what was read after nothing was found in this generation, unless it may have changed since.
    pub(super) async fn put(&self, tenant: &TenantId, user: &UserId, generation: u64, read: &Subscriber) {
        let mut redis = self.redis.clone();
        let mut call = self.put.key(generation_key(tenant));
        call.key(entry_key(tenant, user)).arg(generation).arg(read.to_text()).arg(KEPT_SECONDS);
        if let Ok(Err(error)) = tokio::time::timeout(self.patience, call.invoke_async::<()>(&mut redis)).await
        {
            unsaid(&error);
        }
    }

    /// Sees to it that nothing counts any more that was read before a change.
    pub(super) async fn forget(&self, changed: &Changed) {
        let mut forget = redis::pipe();
        match changed {
            Changed::Subscriber(tenant, user) => {
                forget.set_ex(entry_key(tenant, user), "", KEPT_SECONDS);
            }
            Changed::Tenant(tenant) => {
                let generation = generation_key(tenant);
                forget.incr(&generation, 1).expire(&generation, GENERATION_SECONDS);
            }
            Changed::License(..) | Changed::Anything => return,
        }
        let mut redis = self.redis.clone();
        match tokio::time::timeout(TELLING_MAX, forget.exec_async(&mut redis)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => unsaid(&error),
            Err(_) => {
                tracing::warn!("Redis did not answer; what it keeps of subscribers may be old for a while")
            }
        }
    }
}

/// Says why Redis does not help. The ledger does.
fn unsaid(error: &redis::RedisError) {
    tracing::debug!(error = error as &dyn std::error::Error, "what is kept of subscribers cannot be had");
}

// All keys of a tenant are in one slot of a cluster. In hexadecimal a name has no brace that would end the tag.
fn generation_key(tenant: &TenantId) -> String {
    let name: String = tenant.as_str().bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("sk:limits:{{{name}}}")
}

fn entry_key(tenant: &TenantId, user: &UserId) -> String {
    format!("{}:{user}", generation_key(tenant))
}

#[cfg(test)]
mod tests;
