//! Wake-ups between the processes that share a PostgreSQL: its `LISTEN` and `NOTIFY`.
//!
//! A notice is lost if nobody listens, so nothing may depend on a notice. Each notice is a transaction of its own, because
//! PostgreSQL runs commits with a notice one after another.

use sqlx::postgres::PgListener;

use crate::database::Pool;
use crate::{Error, Ledger};

/// The way to the other processes on a ledger in PostgreSQL.
#[derive(Clone, Debug)]
pub struct Notices {
    // Apart from those that requests use: a listener keeps one for itself.
    connections: Pool,
}

/// A connection that hears notices.
#[derive(Debug)]
pub struct NoticeListener(PgListener);

/// Something that a process told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The channel that it was told on.
    pub channel: String,
    /// The text that it was told.
    pub payload: String,
}

impl Ledger {
    /// Returns the way to the other processes; `None` over SQLite, where there are none.
    pub fn notices(&self) -> Option<Notices> {
        match self.writer() {
            Pool::Sqlite(_) => None,
            Pool::Postgres(_) => Some(Notices { connections: self.writer().apart() }),
        }
    }
}

impl Notices {
    /// Tells whoever listens to this channel now. PostgreSQL takes less than 8,000 bytes.
    pub async fn tell(&self, channel: &str, payload: &str) -> Result<(), Error> {
        let notify = self.connections.query(include_str!("../sql/notify.sql"));
        notify.bind(channel).bind(payload).execute().await?;
        Ok(())
    }

    /// Listens to these channels over a connection of its own.
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
    /// Waits for the next notice; `None`: the connection was lost, and with it what was told since.
    pub async fn next(&mut self) -> Result<Option<Notice>, Error> {
        let heard = self.0.try_recv().await?;
        Ok(heard
            .map(|heard| Notice { channel: heard.channel().to_owned(), payload: heard.payload().to_owned() }))
    }

    /// Makes sure that the connection is there: to listen to a channel twice changes nothing.
    pub async fn ping(&mut self, channel: &str) -> Result<(), Error> {
        Ok(self.0.listen(channel).await?)
    }
}
