//! Messages between nodes over PostgreSQL `NOTIFY`.
//!
//! A node receives changes of entitlements and ends of sessions on a single connection. As with Redis,
//! messages sent while a node is disconnected are lost: after a reconnect the node clears its caches and
//! looks up every awaited end.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use seatkeeper_core::Bucket;
use seatkeeper_ledger::notices::{Notice, NoticeListener, Notices};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::ends::buckets_of;
use super::message::Message;
use super::{CONNECT_TIMEOUT, ENDINGS, ENTITLEMENTS, PING_INTERVAL, PING_TIMEOUT, RETRY_PAUSE_MAX};
use crate::entitlements::{Changed, Entitlements};
use crate::error::Error;
use seatkeeper_engine::Endings;
use seatkeeper_engine::{Progress, Worker};

/// A worker that applies the notices of other nodes: changes of entitlements, and buckets with ended
/// sessions.
pub(crate) struct NoticeReader {
    pub(crate) notices: Notices,
    pub(crate) entitlements: Arc<Entitlements>,
    pub(crate) endings: Arc<Endings>,
    pub(crate) stopping: CancellationToken,
}

impl NoticeReader {
    /// Applies notices until the connection falls silent. Returns `Err` if the connection is lost: the worker retries with
    /// a backoff.
    async fn read(&self) -> Result<(), Error> {
        let listening =
            timeout(CONNECT_TIMEOUT, self.notices.listen(&[ENTITLEMENTS.postgres, ENDINGS.postgres])).await;
        let mut listening: NoticeListener = listening.map_err(|_| Error::TimedOut)?.map_err(Error::Ledger)?;
        // Notices sent before `LISTEN` are lost. Every cached entry may be stale, and any awaited session may
        // have ended.
        self.entitlements.forget(Changed::Anything);
        self.endings.tell_of_buckets(&Bucket::all().collect());
        loop {
            match timeout(PING_INTERVAL, listening.next()).await {
                Ok(Ok(Some(notice))) => self.hear(&notice),
                Ok(Ok(None)) => return Err(Error::NoticesLost),
                Ok(Err(error)) => return Err(Error::Ledger(error)),
                Err(_) => {
                    let Ok(pinged) = timeout(PING_TIMEOUT, listening.ping()).await else {
                        tracing::warn!(
                            "PostgreSQL fell silent on the connection for notices of other nodes: reconnecting"
                        );
                        return Ok(());
                    };
                    pinged.map_err(Error::Ledger)?;
                }
            }
        }
    }

    fn hear(&self, notice: &Notice) {
        if *notice.channel == *ENDINGS.postgres {
            self.endings.tell_of_buckets(&buckets_of(&notice.payload));
        } else {
            self.entitlements.forget(Message::read(notice.payload.as_bytes()));
        }
    }
}

#[async_trait]
impl Worker for NoticeReader {
    type Error = Error;

    fn name(&self) -> &'static str {
        "notices"
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
            lost = self.read() => lost.map(|()| Progress::More),
        }
    }
}
