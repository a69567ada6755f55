//! Wake-ups between processes sharing a PostgreSQL, by `LISTEN` and `NOTIFY`.
//!
//! A notice without a listener is lost, so nothing may depend on a notice. Each notice is a transaction of
//! its own, because PostgreSQL serializes commits with a notice.

use std::io;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use seatkeeper_postgres::Connections;
use sqlx::postgres::PgListener;
use sqlx::{Acquire as _, Connection as _};
use tokio::time::timeout;

use crate::database::Pool;
use crate::{Error, Ledger};

/// Time limit of a notice on a known connection. After the limit the connection counts as frozen, and a fresh connection
/// sends the notice again.
const KNOWN_TIMEOUT: Duration = Duration::from_millis(500);

/// Time limit of a notice on a fresh connection. A distant server takes several round trips to connect.
const FRESH_TIMEOUT: Duration = Duration::from_secs(5);

/// A handle for notices to the processes sharing a ledger in PostgreSQL. Clones share the connection that sends notices.
#[derive(Clone, Debug)]
pub struct Notices {
    sender: Arc<RwLock<NoticeSender>>,
}

/// The connection that sends notices, separate from the connections of requests.
#[derive(Clone, Debug)]
struct NoticeSender {
    connections: Connections,
    /// Raised with each replacement of the connection.
    generation: u64,
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
            Pool::Postgres(connections) => {
                let sender = NoticeSender { connections: connections.single(), generation: 0 };
                Some(Notices { sender: Arc::new(RwLock::new(sender)) })
            }
        }
    }
}

impl Notices {
    /// Sends a notice to the current listeners of a channel. A frozen connection is replaced, and listeners may get the
    /// notice twice. The payload must be shorter than 8,000 bytes.
    pub async fn tell(&self, channel: &str, payload: &str) -> Result<(), Error> {
        let known = self.sender();
        if notify(&known.connections, channel, payload, KNOWN_TIMEOUT).await.is_ok() {
            return Ok(());
        }
        notify(&self.replace(&known).connections, channel, payload, FRESH_TIMEOUT).await
    }

    /// Listens to `channels` over a dedicated connection. A pool of its own keeps a frozen listener from taking the place of
    /// its successor.
    pub async fn listen(&self, channels: &[&str]) -> Result<NoticeListener, Error> {
        let connections = self.sender().connections.single();
        let mut listener = PgListener::connect_with(connections.pool().await?).await?;
        listener.eager_reconnect(false);
        listener.listen_all(channels.iter().copied()).await?;
        Ok(NoticeListener(listener))
    }

    fn sender(&self) -> NoticeSender {
        self.sender.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the connection `known`, unless another caller has replaced it. Returns the present connection.
    fn replace(&self, known: &NoticeSender) -> NoticeSender {
        let mut sender = self.sender.write().unwrap_or_else(PoisonError::into_inner);
        if sender.generation == known.generation {
            let (connections, generation) = (known.connections.single(), known.generation + 1);
            *sender = NoticeSender { connections, generation };
        }
        sender.clone()
    }
}

/// Sends a notice within `limit`.
async fn notify(
    connections: &Connections,
    channel: &str,
    payload: &str,
    limit: Duration,
) -> Result<(), Error> {
    let pool = Pool::Postgres(connections.clone());
    let notify = pool.query(include_str!("../sql/notify.sql")).bind(channel).bind(payload).execute();
    let late = |_| Err(sqlx::Error::Io(io::Error::from(io::ErrorKind::TimedOut)));
    timeout(limit, notify).await.unwrap_or_else(late)?;
    Ok(())
}

impl NoticeListener {
    /// Waits for the next notice. `None` means a lost connection: notices since then are lost too.
    pub async fn next(&mut self) -> Result<Option<Notice>, Error> {
        let heard = self.0.try_recv().await?;
        Ok(heard
            .map(|heard| Notice { channel: heard.channel().to_owned(), payload: heard.payload().to_owned() }))
    }

    /// Checks that the server answers on the connection. A ping is no transaction.
    pub async fn ping(&mut self) -> Result<(), Error> {
        Ok(self.0.acquire().await?.ping().await?)
    }
}
