//! Cache invalidation between nodes: a node publishes each change of an entitlement, and the receivers drop
//! their cached copies.
//!
//! Messages travel over Redis publish/subscribe (`by_redis.rs`) and over PostgreSQL `NOTIFY` (`by_postgres.rs`). A node
//! listens on every transport that the nodes share, so a message arrives even while Redis is out of reach. Either transport
//! loses messages while a node is disconnected. A node therefore clears its caches after every connect, and a cached
//! entry expires after a bounded time in any case.

mod by_postgres;
mod by_redis;
mod ends;
mod message;

use std::sync::Arc;
use std::time::Duration;

use seatkeeper_ledger::notices::Notices;
use seatkeeper_redis::Servers;
use tokio::time::timeout;

use super::Changed;
use crate::error::Error;
pub(crate) use by_postgres::NoticeReader;
pub(crate) use by_redis::Listener;
pub(crate) use ends::{EndTeller, EndedAbroad};
use message::Message;

/// A channel of messages between nodes, by its name in each transport.
struct Channel {
    redis: &'static str,
    postgres: &'static str,
}

/// The channel of changed entitlements.
const ENTITLEMENTS: Channel = Channel { redis: "sk:entitlements", postgres: "seatkeeper_entitlements" };

/// The channel of ends of sessions.
const ENDINGS: Channel = Channel { redis: "sk:endings", postgres: "seatkeeper_endings" };

/// Timeout of connecting and subscribing.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest time that a writer waits for the publication of its change, and for the shared cache to take an invalidation.
pub(super) const TELLING_MAX: Duration = Duration::from_secs(1);

/// Longest time that a writer waits for a lost connection to Redis. A server that is well is connected again within
/// milliseconds, and a server that is away must not delay the answer.
pub(super) const RECONNECT_WAIT: Duration = Duration::from_millis(100);

/// Time limit of an answer to `PUBLISH`. A late answer leaves time for a notice, so that the message arrives within a
/// second.
const PUBLISH_TIMEOUT: Duration = Duration::from_millis(400);

/// Interval of pings on a listening connection, and the time limit of an answer. A connection that died without an error
/// is replaced after both together.
const PING_INTERVAL: Duration = Duration::from_secs(1);
const PING_TIMEOUT: Duration = Duration::from_secs(1);

/// Longest pause of a listener and of a teller after a failure.
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(1);

/// The transports of messages to the other nodes.
#[derive(Clone)]
pub(crate) struct Others {
    /// `None` in deployments without Redis.
    pub(crate) redis: Option<Servers>,
    /// `None` over a ledger in SQLite.
    pub(crate) notices: Option<Notices>,
    /// Returns whether every node reaches Redis.
    pub(crate) is_redis_well: Arc<dyn Fn() -> bool + Send + Sync>,
}

/// Publishes a change to the other nodes. Returns `Err(TimedOut)` after [`TELLING_MAX`].
pub(super) async fn tell(others: &Others, changed: &Changed) -> Result<(), Error> {
    let text = Message::from_change(changed).to_text();
    let told = timeout(TELLING_MAX, announce(others, &ENTITLEMENTS, &text)).await;
    told.map_err(|_| Error::TimedOut)?
}

/// Publishes a message on Redis. PostgreSQL takes a message that Redis refuses, and every message while a node is cut off
/// from Redis. A notice costs a commit, so PostgreSQL takes no other messages.
async fn announce(others: &Others, channel: &Channel, text: &str) -> Result<(), Error> {
    match (&others.redis, &others.notices) {
        (Some(redis), Some(notices)) if (others.is_redis_well)() => {
            match publish(redis, channel, text).await {
                Ok(()) => Ok(()),
                Err(_) => notify(notices, channel, text).await,
            }
        }
        (Some(redis), Some(notices)) => {
            let (_, told) = tokio::join!(publish(redis, channel, text), notify(notices, channel, text));
            told
        }
        (None, Some(notices)) => notify(notices, channel, text).await,
        (Some(redis), None) => publish(redis, channel, text).await,
        (None, None) => Ok(()),
    }
}

/// Publishes a message on a channel of Redis. Returns `Err` if Redis is not connected, or does not answer in time.
async fn publish(servers: &Servers, channel: &Channel, text: &str) -> Result<(), Error> {
    if !servers.is_connected(channel.redis, RECONNECT_WAIT).await {
        return Err(Error::RedisNotConnected);
    }
    let publish = redis::cmd("PUBLISH").arg(channel.redis).arg(text).take();
    let published = timeout(PUBLISH_TIMEOUT, servers.query::<()>(channel.redis, &publish)).await;
    Ok(published.map_err(|_| Error::TimedOut)??)
}

/// Publishes a message on a channel of PostgreSQL.
async fn notify(notices: &Notices, channel: &Channel, text: &str) -> Result<(), Error> {
    notices.tell(channel.postgres, text).await.map_err(Error::Ledger)
}

#[cfg(test)]
mod tests;
