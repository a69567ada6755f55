//! Waits until replicas have what their primary was told.
//!
//! `WAIT` blocks its connection, so it has a connection of its own, and concurrent callers share a `WAIT`. `WAIT` covers the
//! latest write of its own connection, so a key is written there first. A replica applies its primary's writes in order:
//! with the key it has every earlier write.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{ErrorKind, RedisResult};
use tokio::sync::{mpsc, oneshot};

use crate::connect::{connect, identity};
use crate::settings::{Address, ServerSettings};

/// Time limit for the replicas of one `WAIT`.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Callers that share one `WAIT`; further callers share the next.
const CALLERS_MAX: usize = 1_024;

/// The replicas of one server.
#[derive(Debug)]
pub struct Replicas {
    settings: Arc<ServerSettings>,
    address: Address,
    /// The identity of the primary's memory.
    identity: Arc<str>,
    queue: Mutex<Option<mpsc::Sender<Waiting>>>,
}

/// A caller that waits for replicas.
struct Waiting {
    wanted: u32,
    /// A key that may be written on this server.
    key: String,
    have_all: oneshot::Sender<()>,
}

impl Replicas {
    pub(crate) fn new(settings: Arc<ServerSettings>, address: Address, identity: Arc<str>) -> Self {
        Self { settings, address, identity, queue: Mutex::default() }
    }

    /// Waits up to a second, and returns whether `wanted` replicas have all that the server was told before. Writes `key`, which
    /// must be on this server. Returns false as well if the server cannot be asked.
    pub async fn have_all(&self, wanted: u32, key: String) -> bool {
        let (have_all, told) = oneshot::channel();
        let queue = self.queue();
        queue.send(Waiting { wanted, key, have_all }).await.is_ok() && told.await.is_ok()
    }

    /// Returns the queue of the next `WAIT`. A task serves the queue until a failure, or until `self` is dropped.
    fn queue(&self) -> mpsc::Sender<Waiting> {
        let mut queue = self.queue.lock();
        match &*queue {
            Some(queue) if !queue.is_closed() => queue.clone(),
            _ => {
                let (send, waiting) = mpsc::channel(CALLERS_MAX);
                let server = (Arc::clone(&self.settings), self.address.clone(), Arc::clone(&self.identity));
                tokio::spawn(async move {
                    let (settings, address, identity) = server;
                    if let Err(error) = serve(&settings, &address, &identity, waiting).await {
                        let error = &error as &dyn std::error::Error;
                        tracing::warn!(error, redis = %address, "nobody tells what replicas have");
                    }
                });
                queue.insert(send).clone()
            }
        }
    }
}

/// Answers callers until none is left. A caller whose replicas lag is dropped without an answer.
async fn serve(
    settings: &ServerSettings,
    address: &Address,
    primary: &str,
    mut queue: mpsc::Receiver<Waiting>,
) -> RedisResult<()> {
    let mut connection = connect(settings, address).await?;
    if *identity(&mut connection).await? != *primary {
        return Err((ErrorKind::Io, "another server has taken the place").into());
    }
    let mut waiting = Vec::new();
    while queue.recv_many(&mut waiting, CALLERS_MAX).await > 0 {
        let wanted = waiting.iter().map(|waiting| waiting.wanted).max().unwrap_or_default();
        let key = waiting.first().map(|waiting| waiting.key.as_str()).unwrap_or_default();
        let have = wait(&mut connection, key, wanted).await?;
        if have < wanted {
            tracing::warn!(redis = %address, have, wanted, "replicas lag behind");
        }
        for Waiting { wanted, have_all, .. } in waiting.drain(..) {
            if wanted <= have {
                // The caller may have gone.
                let _ = have_all.send(());
            }
        }
    }
    Ok(())
}

/// Returns after at most [`WAIT_MAX`] how many replicas have all that was written so far.
async fn wait(connection: &mut MultiplexedConnection, key: &str, wanted: u32) -> RedisResult<u32> {
    let millis = u64::try_from(WAIT_MAX.as_millis()).unwrap_or(u64::MAX);
    let mut both = redis::pipe();
    both.set(key, "").ignore().cmd("WAIT").arg(wanted).arg(millis);
    let (have,) = both.query_async(connection).await?;
    Ok(have)
}
