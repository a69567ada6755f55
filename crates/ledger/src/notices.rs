//! Wake-ups between processes sharing a PostgreSQL, by `LISTEN` and `NOTIFY`.
//!
//! A notice without a listener is lost, so nothing may depend on a notice. Each notice is a transaction of
//! its own, because PostgreSQL serializes commits with a notice.

use sqlx::postgres::PgListener;

use crate::database::Pool;
use crate::{Error, Ledger};

/// A handle for notices to the processes sharing a ledger in PostgreSQL.
#[derive(Clone, Debug)]
pub struct Notices {
    // Separate from the connections of requests, because each listener keeps one connection.
    connections: Pool,
}

/// A connection receiving notices.
#[derive(Debug)]
pub struct NoticeListener(PgListener);

/// A notice from a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The notice's channel.
    pub channel: String,
    /// The notice's text.
    pub payload: String,
}

impl Ledger {
    /// Returns the handle for notices; `None` over SQLite, because only one process uses the ledger.
    pub fn notices(&self) -> Option<Notices> {
        match self.writer() {
            Pool::Sqlite(_) => None,
            Pool::Postgres(_) => Some(Notices { connections: self.writer().apart() }),
        }
    }
}

impl Notices {
    /// Sends a notice to the current listeners of a channel. The payload must be shorter than 8,000 bytes.
    pub async fn tell(&self, channel: &str, payload: &str) -> Result<(), Error> {
        let notify = self.connections.query(include_str!("../sql/notify.sql"));
        notify.bind(channel).bind(payload).execute().await?;
        Ok(())
    }

    /// Listens to `channels` over a dedicated connection.
    pub async fn listen(&self, channels: &[&str]) -> Result<NoticeListener, Error> {
        let Pool::Postgres(connections) = &self.connections else {
            return Err(sqlx::Error::PoolClosed.into());
        };
        let mut listener = PgListener::connect_with(connections.pool().await?).await?;
        listener.eager_reconnect(false);
        listener.listen_all(channels.iter().copied()).await?;
        Ok(NoticeListener(listener))
    }
}

impl NoticeListener {
    /// Waits for the next notice. `None` means a lost connection: notices since then are lost too.
    pub async fn next(&mut self) -> Result<Option<Notice>, Error> {
        let heard = self.0.try_recv().await?;
        Ok(heard
            .map(|heard| Notice { channel: heard.channel().to_owned(), payload: heard.payload().to_owned() }))
    }

    /// Checks the connection by listening to `channel`. Listening twice is idempotent.
    pub async fn ping(&mut self, channel: &str) -> Result<(), Error> {
        Ok(self.0.listen(channel).await?)
    }
}
