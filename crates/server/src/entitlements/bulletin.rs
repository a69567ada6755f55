//! What the nodes tell one another: that an entitlement has changed, so that each forgets what it remembers.
//!
//! It goes by Redis's publish and subscribe, or by PostgreSQL's notices where no Redis is (`by_postgres.rs`). Both lose
//! what is said while a node does not listen. A node that
//! begins to listen again therefore forgets everything; and nothing that is remembered counts for longer than
//! its time, whether anything was heard or not.

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

/// How long it may take to be told by, or to reach, a server that is well.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// How long whoever changes something waits until the others were told.
pub(super) const TELLING_MAX: Duration = Duration::from_secs(1);

/// How often a node makes sure that it still listens. A connection that died without a word is noticed by it.
const STILL_THERE: Duration = Duration::from_secs(5);

/// The way to the other nodes.
#[derive(Clone)]
pub(crate) enum Others {
    ByRedis(Servers),
    ByPostgres(Notices),
}

/// Tells the other nodes.
pub(super) async fn tell(others: &Others, changed: &Changed) -> Result<(), Error> {
    let text = Message::of(changed).to_text();
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

/// Hears what other nodes tell.
pub(crate) struct Listener {
    others: Servers,
    entitlements: Arc<Entitlements>,
    stopping: CancellationToken,
}

impl Listener {
    /// Listens until `stopping` is cancelled.
    pub(crate) fn new(others: Servers, entitlements: Arc<Entitlements>, stopping: CancellationToken) -> Self {
        Self { others, entitlements, stopping }
    }

    async fn subscribed(&self) -> redis::RedisResult<PubSub> {
        let mut connection = self.others.pubsub().await?;
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
    type Error = Error;

    fn name(&self) -> &'static str {
        "bulletin"
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
