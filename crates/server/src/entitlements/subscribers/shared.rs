//! Cache of subscribers in Redis, shared by every node. A subscriber's first request on a node then needs no
//! read of the ledger.
//!
//! A value read before a change never counts after the change. A changed plan raises the tenant's generation,
//! and an entry of an older generation is a miss. A changed subscription replaces the entry by a tombstone,
//! which rejects writes for the lifetime of an entry. A promoted replica may lack the change, so an entry from another
//! memory of Redis is a miss as well.

use std::borrow::Cow;
use std::time::Duration;

use redis::{Cmd, FromRedisValue, RedisResult};
use seatkeeper_core::{TenantId, UserId};
use seatkeeper_ledger::subscriptions::Subscriber;
use seatkeeper_redis::{Connection, Retry, Script, Servers, Slot};

use crate::entitlements::Changed;
use crate::entitlements::invalidation::{RECONNECT_WAIT, TELLING_MAX};

/// Lifetime of an entry, and of a tombstone after a change, in seconds. With the longest life in a node's cache, 30 s, a plan
/// is remembered for less than the 60 s for which an empty pool remembers newer terms.
const KEPT_SECONDS: u64 = 25;

/// Lifetime of a tenant's generation counter, in seconds. The counter must outlive every entry of an older
/// generation.
const GENERATION_SECONDS: i64 = 3_600;

/// A client of the shared cache.
pub(super) struct Shared {
    redis: Servers,
    put: Script,
    forget_tenant: Script,
    patience: Duration,
}

/// The result of a read.
pub(super) enum CacheRead {
    Subscriber(Subscriber),
    /// A miss, with the mark for an entry that is read from now on.
    Nothing(EntryMark),
}

/// The mark of an entry: an entry counts only with the mark of the present.
#[derive(Clone, Debug)]
pub(super) struct EntryMark {
    /// The tenant's generation.
    generation: u64,
    /// The identity of Redis's memory.
    memory: String,
}

impl Shared {
    /// Creates a client that waits up to `patience` for Redis, before the ledger is read instead.
    pub(super) fn new(redis: Servers, patience: Duration) -> Self {
        Self {
            redis,
            put: Script::new(include_str!("shared/put.lua")),
            forget_tenant: Script::new(include_str!("shared/forget_tenant.lua")),
            patience,
        }
    }

    /// Reads an entry. Returns `None` if Redis fails or exceeds the timeout.
    pub(super) async fn get(&self, tenant: &TenantId, user: &UserId) -> Option<CacheRead> {
        let generation = generation_key(tenant);
        let asked = redis::cmd("MGET").arg(&generation).arg(entry_key(tenant, user)).take();
        let read = tokio::time::timeout(self.patience, self.read(&generation, &asked));
        let (mark, entry) = read.await.ok()?.inspect_err(unsaid).ok()?;
        let EntryMark { generation, memory } = &mark;
        let counts =
            entry.as_deref().and_then(|entry| entry.strip_prefix(&format!("{generation} {memory} ")));
        let subscriber = counts.and_then(Subscriber::from_text);
        Some(subscriber.map_or(CacheRead::Nothing(mark), CacheRead::Subscriber))
    }

    /// Reads the mark of the present and an entry, by the command `asked`.
    async fn read(&self, generation: &str, asked: &Cmd) -> RedisResult<(EntryMark, Option<String>)> {
        let command = |_: &Connection| Cow::Borrowed(asked);
        let answer = self.redis.call(Slot::from_key(generation), None, Retry::Never, command).await?;
        let memory = answer.connection.identity().to_owned();
        let (generation, entry): (Option<u64>, _) = FromRedisValue::from_redis_value(answer.value)?;
        Ok((EntryMark { generation: generation.unwrap_or_default(), memory }, entry))
    }

    /// Stores a subscriber read after a miss with `mark`, unless a change has happened since the miss (`put.lua`).
    pub(super) async fn put(&self, tenant: &TenantId, user: &UserId, mark: &EntryMark, read: &Subscriber) {
        let keys = [generation_key(tenant), entry_key(tenant, user)];
        let mut call = self.put.call(keys.iter());
        let text = format!("{} {}", mark.memory, read.to_text());
        call.arg(mark.generation).arg(text).arg(KEPT_SECONDS);
        let put = self.redis.run::<()>(&keys[0], &self.put, &call);
        if let Ok(Err(error)) = tokio::time::timeout(self.patience, put).await {
            unsaid(&error);
        }
    }

    /// Invalidates the entries that `changed` affects: a subscriber by a tombstone, a tenant by a new
    /// generation.
    pub(super) async fn forget(&self, changed: &Changed) {
        match tokio::time::timeout(TELLING_MAX, self.try_to_forget(changed)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => unsaid(&error),
            Err(_) => {
                tracing::warn!(
                    "Redis did not answer an invalidation: cached subscribers may be stale until they expire"
                )
            }
        }
    }

    async fn try_to_forget(&self, changed: &Changed) -> RedisResult<()> {
        match changed {
            Changed::Subscriber(tenant, _) | Changed::Tenant(tenant)
                if !self.redis.is_connected(&generation_key(tenant), RECONNECT_WAIT).await =>
            {
                tracing::warn!(
                    "Redis is not connected, and missed an invalidation: should Redis return with its memory, cached \
                     subscribers may be stale until they expire"
                );
                Ok(())
            }
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
            Changed::License(..) | Changed::Group(..) | Changed::Anything => Ok(()),
        }
    }
}

/// Logs a failure of the shared cache at debug level, because the ledger serves instead.
fn unsaid(error: &redis::RedisError) {
    tracing::debug!(
        error = error as &dyn std::error::Error,
        "the shared cache of subscribers failed; the ledger serves instead"
    );
}

// The hash tag puts every key of a tenant into one slot of a Redis cluster. The tenant's name is in
// hexadecimal, because a brace in the name would end the tag.
fn generation_key(tenant: &TenantId) -> String {
    let name: String = tenant.as_str().bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("sk:limits:{{{name}}}")
}

fn entry_key(tenant: &TenantId, user: &UserId) -> String {
    format!("{}:{user}", generation_key(tenant))
}

#[cfg(test)]
mod tests;
