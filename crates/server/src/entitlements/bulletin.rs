//! What the nodes tell one another: that an entitlement has changed, so that each forgets what it remembers.
//!
//! It goes by Redis's publish and subscribe, which loses what is said while a node does not listen. A node that
//! begins to listen again therefore forgets everything; and nothing that is remembered counts for longer than
//! its time, whether anything was heard or not.

mod message;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use redis::AsyncCommands as _;
use redis::aio::{ConnectionManager, ConnectionManagerConfig, PubSub};
use tokio_util::sync::CancellationToken;

use super::{Changed, Entitlements};
use crate::error::Error;
use crate::workers::{Left, Worker};
use message::Message;

const CHANNEL: &str = "sk:entitlements";

/// How long it may take to be told by, or to reach, a server that is well.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// How long whoever changes something waits until the others were told.
pub(super) const TELLING_MAX: Duration = Duration::from_secs(1);

/// How often a node makes sure that it still listens. A connection that died without a word is noticed by it.
const STILL_THERE: Duration = Duration::from_secs(5);

/// Tells the other nodes.
pub(super) async fn tell(mut others: ConnectionManager, changed: &Changed) -> Result<(), Error> {
    let told = others.publish::<_, _, ()>(CHANNEL, Message::of(changed).to_text());
    Ok(tokio::time::timeout(TELLING_MAX, told).await.map_err(|_| Error::TimedOut)??)
}

/// A connection to publish by, to the Redis at `url`. It is made when it is first used.
pub(crate) fn to_others(url: &str) -> redis::RedisResult<ConnectionManager> {
    let config = ConnectionManagerConfig::new()
        .set_connection_timeout(Some(ANSWER_TIMEOUT))
        .set_response_timeout(Some(ANSWER_TIMEOUT));
    ConnectionManager::new_lazy_with_config(redis::Client::open(url)?, config)
}

/// Hears what other nodes tell.
pub(crate) struct Listener {
    client: redis::Client,
    entitlements: Arc<Entitlements>,
    stopping: CancellationToken,
}

impl Listener {
    /// Listens at the Redis at `url` until `stopping` is cancelled.
    pub(crate) fn new(
        url: &str,
        entitlements: Arc<Entitlements>,
        stopping: CancellationToken,
    ) -> redis::RedisResult<Self> {
        Ok(Self { client: redis::Client::open(url)?, entitlements, stopping })
    }

    async fn subscribed(&self) -> redis::RedisResult<PubSub> {
        let mut connection = self.client.get_async_pubsub().await?;
        connection.subscribe(CHANNEL).await?;
        Ok(connection)
    }

    /// Hears until the connection ends.
    async fn listen(&self) -> Result<(), Error> {
        let subscribed = tokio::time::timeout(ANSWER_TIMEOUT, self.subscribed()).await;
        let (mut speaking, mut heard) = subscribed.map_err(|_| Error::TimedOut)??.split();
        // What was said before is not said again.
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
    fn name(&self) -> &'static str {
        "bulletin"
    }

    fn rest(&self) -> Duration {
        Duration::ZERO
    }

    async fn activate(&self) -> Result<Left, Error> {
        tokio::select! {
            () = self.stopping.cancelled() => Ok(Left::Nothing),
            ended = self.listen() => ended.map(|()| Left::More),
        }
    }
}

#[cfg(test)]
mod tests;
