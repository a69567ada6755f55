//! Messages between nodes over Redis publish/subscribe.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use redis::Msg;
use redis::aio::PubSub;
use seatkeeper_core::Bucket;
use seatkeeper_engine::{Endings, Progress, Worker};
use seatkeeper_redis::Servers;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::ends::buckets_of;
use super::message::Message;
use super::{CONNECT_TIMEOUT, ENDINGS, ENTITLEMENTS, PING_INTERVAL, PING_TIMEOUT, RETRY_PAUSE_MAX};
use crate::entitlements::{Changed, Entitlements};
use crate::error::Error;

/// A worker that applies the messages of other nodes: changes of entitlements, and buckets with ended sessions.
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

    /// Subscribes, and applies messages until the connection ends or falls silent.
    async fn listen(&self) -> Result<(), Error> {
        let subscribed = timeout(CONNECT_TIMEOUT, self.subscribed()).await;
        let (mut speaking, mut heard) = subscribed.map_err(|_| Error::TimedOut)??.split();
        // Messages published before the subscription are lost. Every cached entry may be stale, and any awaited
        // session may have ended.
        self.entitlements.forget(Changed::Anything);
        self.endings.tell_of_buckets(&Bucket::all().collect());
        let mut ping_due = tokio::time::interval(PING_INTERVAL);
        loop {
            tokio::select! {
                message = heard.next() => match message {
                    Some(message) => self.hear(&message),
                    None => return Ok(()),
                },
                _ = ping_due.tick() => {
                    let Ok(pinged) = timeout(PING_TIMEOUT, speaking.subscribe(ENTITLEMENTS.redis)).await else {
                        tracing::warn!("Redis fell silent on the connection for messages of other nodes: reconnecting");
                        return Ok(());
                    };
                    pinged?;
                }
            }
        }
    }

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

    fn retry_pause_max(&self) -> Duration {
        RETRY_PAUSE_MAX
    }

    async fn activate(&self) -> Result<Progress, Error> {
        tokio::select! {
            () = self.stopping.cancelled() => Ok(Progress::Idle),
            ended = self.listen() => ended.map(|()| Progress::More),
        }
    }
}
