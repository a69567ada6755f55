//! Waits until replicas have received the writes of their primary.
//!
//! `WAIT` blocks its connection, so it has a dedicated connection, and concurrent callers share a `WAIT`.
//! `WAIT` covers the latest write of its own connection, so a key is written first. A replica applies writes
//! in the order of its primary: a replica with the key has every earlier write.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{ErrorKind, RedisResult};
use tokio::sync::{mpsc, oneshot};

use crate::connect::{connect, identity};
use crate::settings::{Address, ServerSettings};

/// Time limit of a `WAIT`.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Most callers of a shared `WAIT`. Further callers share the next `WAIT`.
const CALLERS_MAX: usize = 1_024;

/// The replicas of a server.
#[derive(Debug)]
pub struct Replicas {
    settings: Arc<ServerSettings>,
    address: Address,
    /// The identity of the primary's memory.
    identity: Arc<str>,
    queue: Mutex<Option<mpsc::Sender<Waiting>>>,
}

/// A caller waiting for replicas.
struct Waiting {
    wanted: u32,
    /// A key in a slot of the server, free to be written.
    key: String,
    have_all: oneshot::Sender<()>,
}

impl Replicas {
    pub(crate) fn new(settings: Arc<ServerSettings>, address: Address, identity: Arc<str>) -> Self {
        Self { settings, address, identity, queue: Mutex::default() }
    }

    /// Waits up to a second, and returns `true` if `wanted` replicas have every write made before the call.
    /// Writes `key`, which must be in a slot of the server. Returns `false` also if the server is
    /// unreachable.
    pub async fn have_all(&self, wanted: u32, key: String) -> bool {
        let (have_all, told) = oneshot::channel();
        let queue = self.queue();
        queue.send(Waiting { wanted, key, have_all }).await.is_ok() && told.await.is_ok()
    }

    /// Returns the queue of the next `WAIT`. A task serves the queue until a failure or the drop of `self`.
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
                        tracing::warn!(error, redis = %address, "WAIT failed: writes count as unreplicated");
                    }
                });
                queue.insert(send).clone()
            }
        }
    }
}

/// Answers callers until the queue is closed. A caller with lagging replicas is dropped without an answer.
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
            tracing::warn!(redis = %address, have, wanted, "replicas lag: writes count as unreplicated");
        }
        for Waiting { wanted, have_all, .. } in waiting.drain(..) {
            if wanted <= have {
                // The caller may have gone: ignore the error.
                let _ = have_all.send(());
            }
        }
    }
    Ok(())
}

/// Returns the number of replicas with every write so far, after at most [`WAIT_MAX`].
async fn wait(connection: &mut MultiplexedConnection, key: &str, wanted: u32) -> RedisResult<u32> {
    let millis = u64::try_from(WAIT_MAX.as_millis()).unwrap_or(u64::MAX);
    let mut both = redis::pipe();
    both.set(key, "").ignore().cmd("WAIT").arg(wanted).arg(millis);
    let (have,) = both.query_async(connection).await?;
    Ok(have)
}
