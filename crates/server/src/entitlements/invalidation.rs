//! Cache invalidation between nodes: a node publishes each change of an entitlement, and the receivers drop
//! their cached copies.
//!
//! Messages travel over Redis publish/subscribe, or over PostgreSQL `NOTIFY` in deployments without Redis
//! (`by_postgres.rs`). Either transport loses messages while a node is disconnected. A node therefore clears
//! its caches after every connect, and a cached entry expires after a bounded time in any case.

mod by_postgres;
mod message;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use redis::aio::PubSub;
use seatkeeper_ledger::notices::Notices;
use seatkeeper_redis::Servers;
use tokio_util::sync::CancellationToken;

use super::{Changed, Entitlements};
use crate::error::Error;
pub(crate) use by_postgres::{EndTeller, EndedAbroad, NoticeReader};
use message::Message;
use seatkeeper_engine::{Progress, Worker};

const CHANNEL: &str = "sk:entitlements";

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
    let told = async {
        match others {
            Others::ByRedis(servers) => {
                let publish = redis::cmd("PUBLISH").arg(CHANNEL).arg(text).take();
                Ok(servers.query::<()>(CHANNEL, &publish).await?)
            }
            Others::ByPostgres(notices) => {
                notices.tell(by_postgres::ENTITLEMENTS, &text).await.map_err(Error::Ledger)
            }
        }
    };
    tokio::time::timeout(TELLING_MAX, told).await.map_err(|_| Error::TimedOut)?
}

/// A worker that applies invalidations received over Redis to the caches of this node.
pub(crate) struct Listener {
    others: Servers,
    entitlements: Arc<Entitlements>,
    stopping: CancellationToken,
}

impl Listener {
    /// Creates a listener that runs until `stopping` is cancelled.
    pub(crate) fn new(others: Servers, entitlements: Arc<Entitlements>, stopping: CancellationToken) -> Self {
        Self { others, entitlements, stopping }
    }

    async fn subscribed(&self) -> redis::RedisResult<PubSub> {
        let mut connection = self.others.pubsub().await?;
        connection.subscribe(CHANNEL).await?;
        Ok(connection)
    }

    /// Subscribes, and applies invalidations until the connection ends.
    async fn listen(&self) -> Result<(), Error> {
        let subscribed = tokio::time::timeout(ANSWER_TIMEOUT, self.subscribed()).await;
        let (mut speaking, mut heard) = subscribed.map_err(|_| Error::TimedOut)??.split();
        // Messages published before the subscription are lost, so every cached entry may be stale.
        self.entitlements.forget(Changed::Anything);
        let mut still_there = tokio::time::interval(STILL_THERE);
        loop {
            tokio::select! {
                message = heard.next() => match message {
                    Some(message) => self.entitlements.forget(Message::read(message.get_payload_bytes())),
                    None => return Ok(()),
                },
                _ = still_there.tick() => {
                    let subscribed = tokio::time::timeout(ANSWER_TIMEOUT, speaking.subscribe(CHANNEL)).await;
                    subscribed.map_err(|_| Error::TimedOut)??;
                }
            }
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
