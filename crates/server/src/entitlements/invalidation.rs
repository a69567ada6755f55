//! Cache invalidation between nodes: a node publishes each change of an entitlement, and the receivers drop
//! their cached copies.
//!
//! Messages travel over Redis publish/subscribe, or over PostgreSQL `NOTIFY` in deployments without Redis
//! (`by_postgres.rs`). Either transport loses messages while a node is disconnected. A node therefore clears
//! its caches after every connect, and a cached entry expires after a bounded time in any case.

mod by_postgres;
mod ends;
mod message;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use redis::Msg;
use redis::aio::PubSub;
use seatkeeper_core::Bucket;
use seatkeeper_ledger::notices::Notices;
use seatkeeper_redis::Servers;
use tokio_util::sync::CancellationToken;

use super::{Changed, Entitlements};
use crate::error::Error;
pub(crate) use by_postgres::NoticeReader;
use ends::buckets_of;
pub(crate) use ends::{EndTeller, EndedAbroad};
use message::Message;
use seatkeeper_engine::{Endings, Progress, Worker};

/// A channel of messages between nodes, by its name in each transport.
struct Channel {
    redis: &'static str,
    postgres: &'static str,
}

/// The channel of changed entitlements.
const ENTITLEMENTS: Channel = Channel { redis: "sk:entitlements", postgres: "seatkeeper_entitlements" };

/// The channel of ends of sessions.
const ENDINGS: Channel = Channel { redis: "sk:endings", postgres: "seatkeeper_endings" };

/// Timeout of connecting, subscribing and pinging.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest time that a writer waits for the publication of its change.
pub(super) const TELLING_MAX: Duration = Duration::from_secs(1);

/// Interval of liveness checks on the listening connection. A check detects a connection that died silently.
const STILL_THERE: Duration = Duration::from_secs(5);

/// The transport of messages to the other nodes.
#[derive(Clone)]
pub(crate) enum Others {
    ByRedis(Servers),
    ByPostgres(Notices),
}

/// Publishes a change to the other nodes. Returns `Err(TimedOut)` after [`TELLING_MAX`].
pub(super) async fn tell(others: &Others, changed: &Changed) -> Result<(), Error> {
    let text = Message::from_change(changed).to_text();
    let told = publish(others, &ENTITLEMENTS, &text);
    tokio::time::timeout(TELLING_MAX, told).await.map_err(|_| Error::TimedOut)?
}

/// Publishes a message on a channel.
async fn publish(others: &Others, channel: &Channel, text: &str) -> Result<(), Error> {
    match others {
        Others::ByRedis(servers) => {
            let publish = redis::cmd("PUBLISH").arg(channel.redis).arg(text).take();
            Ok(servers.query::<()>(channel.redis, &publish).await?)
        }
        Others::ByPostgres(notices) => notices.tell(channel.postgres, text).await.map_err(Error::Ledger),
    }
}

/// A worker that applies invalidations received over Redis to the caches of this node.
pub(crate) struct Listener {
    others: Servers,
    entitlements: Arc<Entitlements>,
    endings: Arc<Endings>,
    stopping: CancellationToken,
}

impl Listener {
    /// Creates a listener that runs until `stopping` is cancelled.
    pub(crate) fn new(
        others: Servers,
        entitlements: Arc<Entitlements>,
        endings: Arc<Endings>,
        stopping: CancellationToken,
    ) -> Self {
        Self { others, entitlements, endings, stopping }
    }

    async fn subscribed(&self) -> redis::RedisResult<PubSub> {
        let mut connection = self.others.pubsub().await?;
        connection.subscribe(&[ENTITLEMENTS.redis, ENDINGS.redis]).await?;
        Ok(connection)
    }

    /// Subscribes, and applies invalidations until the connection ends.
    async fn listen(&self) -> Result<(), Error> {
        let subscribed = tokio::time::timeout(ANSWER_TIMEOUT, self.subscribed()).await;
        let (mut speaking, mut heard) = subscribed.map_err(|_| Error::TimedOut)??.split();
        // Messages published before the subscription are lost. Every cached entry may be stale, and any awaited
        // session may have ended.
        self.entitlements.forget(Changed::Anything);
        self.endings.tell_of_buckets(&Bucket::all().collect());
        let mut still_there = tokio::time::interval(STILL_THERE);
        loop {
            tokio::select! {
                message = heard.next() => match message {
                    Some(message) => self.hear(&message),
                    None => return Ok(()),
                },
                _ = still_there.tick() => {
                    let subscribed = tokio::time::timeout(ANSWER_TIMEOUT, speaking.subscribe(ENTITLEMENTS.redis)).await;
                    subscribed.map_err(|_| Error::TimedOut)??;
                }
            }
        }
    }
}

impl Listener {
    fn hear(&self, message: &Msg) {
        if message.get_channel_name() == ENDINGS.redis {
            let text = String::from_utf8_lossy(message.get_payload_bytes());
            self.endings.tell_of_buckets(&buckets_of(&text));
        } else {
            self.entitlements.forget(Message::read(message.get_payload_bytes()));
        }
    }
}

#[async_trait]
impl Worker for Listener {
    type Error = Error;

    fn name(&self) -> &'static str {
        "invalidation"
    }

    fn rest(&self) -> Duration {
        Duration::ZERO
    }

    async fn activate(&self) -> Result<Progress, Error> {
        tokio::select! {
            () = self.stopping.cancelled() => Ok(Progress::Idle),
            ended = self.listen() => ended.map(|()| Progress::More),
        }
    }
}

#[cfg(test)]
mod tests;
