//! Makes sure that replicas have what their server was told.
//!
//! `WAIT` blocks its connection until they do, so it is sent on one that is for nothing else, and whoever waits at the
//! same time shares it. It speaks of what its own connection wrote last, and so a key is written on it first: a replica takes
//! what its server writes in that order, and one that has this has all that came before.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{ErrorKind, RedisResult};
use tokio::sync::{mpsc, oneshot};

use super::connect::{connect, identity};
use super::settings::{Address, ServerSettings};
use crate::{Error, Identity};

/// How long replicas may take.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// So many share one `WAIT`; others wait for the next.
const AT_ONCE_MAX: usize = 1_024;

/// The replicas of one server.
#[derive(Debug)]
pub(super) struct Replicas {
    settings: Arc<ServerSettings>,
    address: Address,
    server: Identity,
    line: Mutex<Option<mpsc::Sender<Waiting>>>,
}

/// Who waits.
struct Waiting {
    wanted: u32,
    /// A key that may be written on this server.
    key: String,
    told: oneshot::Sender<()>,
}

impl Replicas {
    pub(super) fn new(settings: Arc<ServerSettings>, address: Address, server: Identity) -> Self {
        Self { settings, address, server, line: Mutex::default() }
    }

    /// Returns once so many replicas have all that the server was told before. An error: they do not have it in time,
    /// or it cannot be told.
    pub(super) async fn have_all(&self, wanted: u32, key: String) -> Result<(), Error> {
        let (told, hears) = oneshot::channel();
        let line = self.line();
        line.send(Waiting { wanted, key, told }).await.map_err(|_| Error::TimedOut)?;
        hears.await.map_err(|_| Error::TimedOut)
    }

    /// Where to wait. It is made anew after a failure, and ends with this.
    fn line(&self) -> mpsc::Sender<Waiting> {
        let mut line = self.line.lock();
        match &*line {
            Some(line) if !line.is_closed() => line.clone(),
            _ => {
                let (send, asked) = mpsc::channel(AT_ONCE_MAX);
                let server = (Arc::clone(&self.settings), self.address.clone(), self.server.clone());
                tokio::spawn(async move {
                    let (settings, address, server) = server;
                    if let Err(error) = serve(&settings, &address, &server, asked).await {
                        let error = &error as &dyn std::error::Error;
                        tracing::warn!(error, redis = %address, "nobody tells what replicas have");
                    }
                });
                line.insert(send).clone()
            }
        }
    }
}

/// Tells all who wait what replicas have, until nobody can ask any more. Who is not told waits in vain.
async fn serve(
    settings: &ServerSettings,
    address: &Address,
    server: &Identity,
    mut asked: mpsc::Receiver<Waiting>,
) -> RedisResult<()> {
    let mut connection = connect(settings, address).await?;
    if identity(&mut connection).await? != *server {
        return Err((ErrorKind::Io, "another server has taken the place").into());
    }
    let mut waiting = Vec::new();
    while asked.recv_many(&mut waiting, AT_ONCE_MAX).await > 0 {
        let wanted = waiting.iter().map(|waiting| waiting.wanted).max().unwrap_or_default();
        let key = waiting.first().map(|waiting| waiting.key.as_str()).unwrap_or_default();
        let have = wait(&mut connection, key, wanted).await?;
        if have < wanted {
            tracing::warn!(redis = %address, have, wanted, "replicas lag behind");
        }
        for Waiting { wanted, told, .. } in waiting.drain(..) {
            if wanted <= have {
                // Who has gone away need not be told.
                let _ = told.send(());
            }
        }
    }
    Ok(())
}

/// How many replicas have all that was written so far, at the latest after [`WAIT_MAX`].
async fn wait(connection: &mut MultiplexedConnection, key: &str, wanted: u32) -> RedisResult<u32> {
    let millis = u64::try_from(WAIT_MAX.as_millis()).unwrap_or(u64::MAX);
    let mut both = redis::pipe();
    both.set(key, "").ignore().cmd("WAIT").arg(wanted).arg(millis);
    let (have,) = both.query_async(connection).await?;
    Ok(have)
}
