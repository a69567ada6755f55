//! What was read of subscribers, kept for all nodes in Redis for a while, so that a node which a subscriber
//! comes to for the first time need not ask the ledger.
//!
//! What a node keeps here was read before it is kept, and may have changed in between. So each tenant has a
//! generation, which rises with its plans, and an entry whose subscription has changed is closed for as long
//! as it would have been kept: what was read before that finds no place.

use std::time::Duration;

use redis::RedisResult;
use seatkeeper_core::{TenantId, UserId};
use seatkeeper_ledger::subscriptions::Subscriber;
use seatkeeper_redis::{Script, Servers};

use crate::entitlements::Changed;
use crate::entitlements::bulletin::TELLING_MAX;

/// How long an entry counts, and how long it stays closed after a change.
const KEPT_SECONDS: u64 = 60;

/// How long a tenant's generation is known: for longer than what was read in an older one counts.
const GENERATION_SECONDS: i64 = 3_600;

/// The entries.
pub(super) struct Shared {
    redis: Servers,
    put: Script,
    forget_tenant: Script,
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
    pub(super) fn new(redis: Servers, patience: Duration) -> Self {
        Self {
            redis,
            put: Script::new(include_str!("shared/put.lua")),
            forget_tenant: Script::new(include_str!("shared/forget_tenant.lua")),
            patience,
        }
    }

    /// What is kept of a subscriber; none if Redis does not say.
    pub(super) async fn get(&self, tenant: &TenantId, user: &UserId) -> Option<Found> {
        let generation = generation_key(tenant);
        let asked = redis::cmd("MGET").arg(&generation).arg(entry_key(tenant, user)).take();
        let answer: RedisResult<(Option<u64>, Option<String>)> =
            tokio::time::timeout(self.patience, self.redis.query(&generation, &asked)).await.ok()?;
        let (generation, entry) = answer.inspect_err(unsaid).ok()?;
        let generation = generation.unwrap_or_default();
        let counts = entry.as_deref().and_then(|entry| entry.strip_prefix(&format!("{generation} ")));
        Some(counts.and_then(Subscriber::from_text).map_or(Found::Nothing(generation), Found::Subscriber))
    }

    /// Keeps what was read after nothing was found in this generation, unless it may have changed since.
    pub(super) async fn put(&self, tenant: &TenantId, user: &UserId, generation: u64, read: &Subscriber) {
        let keys = [generation_key(tenant), entry_key(tenant, user)];
        let mut call = self.put.call(keys.iter());
        call.arg(generation).arg(read.to_text()).arg(KEPT_SECONDS);
        let put = self.redis.run::<()>(&keys[0], &self.put, &call);
        if let Ok(Err(error)) = tokio::time::timeout(self.patience, put).await {
            unsaid(&error);
        }
    }

    /// Sees to it that nothing counts any more that was read before a change.
    pub(super) async fn forget(&self, changed: &Changed) {
        match tokio::time::timeout(TELLING_MAX, self.try_to_forget(changed)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => unsaid(&error),
            Err(_) => {
                tracing::warn!("Redis did not answer; what it keeps of subscribers may be old for a while")
            }
        }
    }

    async fn try_to_forget(&self, changed: &Changed) -> RedisResult<()> {
        match changed {
            Changed::Subscriber(tenant, user) => {
                let entry = entry_key(tenant, user);
                let close = redis::cmd("SETEX").arg(&entry).arg(KEPT_SECONDS).arg("").take();
                self.redis.query(&entry, &close).await
            }
            Changed::Tenant(tenant) => {
                let generation = generation_key(tenant);
                let mut call = self.forget_tenant.call([&generation].into_iter());
                call.arg(GENERATION_SECONDS);
                self.redis.run(&generation, &self.forget_tenant, &call).await
            }
            Changed::License(..) | Changed::Anything => Ok(()),
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
