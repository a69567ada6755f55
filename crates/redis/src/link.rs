//! The link to a server: a single connection shared by every call, and a background task that reconnects for
//! ever (`keeper.rs`).

mod keeper;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, RedisResult, Value};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use crate::connect::identity;
use crate::error::{is_end_of_connection, is_not_loaded, is_without_answer, not_reached};
use crate::replicas::Replicas;
use crate::script::Script;
use crate::settings::{Address, ServerSettings};
use crate::target::Target;

/// Time limit for a call to wait for a connection in the making.
pub(crate) const CONNECTION_WAIT_MAX: Duration = Duration::from_secs(1);

/// The link to a server. A drop closes the connection.
#[derive(Debug)]
pub struct Link {
    settings: Arc<ServerSettings>,
    target: Target,
    state: watch::Sender<State>,
    /// The server's reason for refusing the latest write; `None` if the write succeeded.
    refusal: Mutex<Option<Arc<str>>>,
    keeper: JoinHandle<()>,
}

#[derive(Clone, Debug)]
enum State {
    Up(Arc<Connection>),
    /// No connection, with the reason.
    Down(Arc<str>),
    /// No connection, because the server does not accept the node, or a file cannot be read; with the reason.
    Rejected(Arc<str>),
}

/// A connection to a server, and the identity of the server's memory.
#[derive(Debug)]
pub struct Connection {
    connection: MultiplexedConnection,
    identity: Arc<str>,
    replicas: Replicas,
    identity_doubted: Notify,
}

impl Connection {
    fn new(
        settings: &Arc<ServerSettings>,
        address: Address,
        connection: MultiplexedConnection,
        identity: Arc<str>,
    ) -> Self {
        let replicas = Replicas::new(Arc::clone(settings), address, Arc::clone(&identity));
        Self { connection, identity, replicas, identity_doubted: Notify::new() }
    }

    /// Returns the identity of the server's memory. The identity changes when the server restarts, and at the
    /// promotion of a replica, whose memory may lag.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Returns the replicas of the server.
    pub fn replicas(&self) -> &Replicas {
        &self.replicas
    }

    /// Requests a new reading of the identity at once, after the server refused a call with the present
    /// identity.
    pub fn doubt_identity(&self) {
        self.identity_doubted.notify_one();
    }

    /// Returns a handle of the connection. Handles may be used concurrently.
    pub(crate) fn multiplexed(&self) -> MultiplexedConnection {
        self.connection.clone()
    }
}

impl Link {
    pub(crate) fn new(settings: Arc<ServerSettings>, target: Target) -> Arc<Self> {
        let (state, seen) = watch::channel(State::Down("it was never reached".into()));
        let keeper = tokio::spawn(keeper::keep(Arc::clone(&settings), target.clone(), state.clone(), seen));
        Arc::new(Self { settings, target, state, refusal: Mutex::default(), keeper })
    }

    /// Reads the identity of the server's memory anew. Later calls carry the new identity.
    pub async fn identity_now(&self) -> RedisResult<Arc<str>> {
        let up = self.up().await?;
        match identity(&mut up.multiplexed()).await {
            Ok(identity) => {
                keeper::replace_identity(&self.settings, &self.target, &self.state, &up, &identity).await;
                Ok(identity)
            }
            Err(error) => {
                lose(&self.state, &up, &error);
                Err(error)
            }
        }
    }

    /// Records the outcome of a write on the server, and logs every change from success to refusal and back. A
    /// lost connection and a timeout are no refusal, and change nothing.
    pub fn note_write(&self, written: &RedisResult<Value>) {
        if written.as_ref().is_err_and(is_without_answer) {
            return;
        }
        let refusal = written.as_ref().err().map(|error| Arc::from(error.to_string()));
        let mut latest = self.refusal.lock();
        match (&*latest, &refusal) {
            (None, Some(why)) => tracing::error!(
                %why,
                "Redis refuses writes: its buckets count as out of reach until a write succeeds; see its log and INFO"
            ),
            (Some(_), None) => tracing::info!("Redis takes writes again"),
            (Some(_), Some(_)) | (None, None) => {}
        }
        *latest = refusal;
    }

    /// Returns the server's reason for refusing the latest write, `None` after a successful write.
    pub(crate) fn refusal(&self) -> Option<Arc<str>> {
        self.refusal.lock().clone()
    }

    /// Returns the reason why the server does not accept the node, `None` if the latest attempt to connect did not fail so.
    pub(crate) fn rejection(&self) -> Option<Arc<str>> {
        match &*self.state.borrow() {
            State::Rejected(why) => Some(Arc::clone(why)),
            State::Up(_) | State::Down(_) => None,
        }
    }

    /// Returns the current address of the server.
    pub(crate) async fn address(&self) -> RedisResult<Address> {
        self.target.address(&self.settings).await
    }

    /// Returns the connection, `None` while disconnected.
    pub(crate) fn up_now(&self) -> Option<Arc<Connection>> {
        match &*self.state.borrow() {
            State::Up(up) => Some(Arc::clone(up)),
            State::Down(_) | State::Rejected(_) => None,
        }
    }

    /// Waits up to a second for the connection.
    pub async fn up(&self) -> RedisResult<Arc<Connection>> {
        if let Some(up) = self.up_now() {
            return Ok(up);
        }
        let mut state = self.state.subscribe();
        let up =
            tokio::time::timeout(CONNECTION_WAIT_MAX, state.wait_for(|state| matches!(state, State::Up(_))));
        match up.await.map(|waited| waited.map(|state| state.clone())) {
            Ok(Ok(State::Up(up))) => Ok(up),
            _ => Err(self.down()),
        }
    }

    /// Sends a command over a connection of the link. If the server lacks `script`, loads the script and
    /// retries.
    pub async fn send(
        &self,
        up: &Arc<Connection>,
        script: Option<&Script>,
        command: &Cmd,
    ) -> RedisResult<Value> {
        let mut to_load = script;
        let answer = loop {
            let answer = up.multiplexed().send_packed_command(command).await.and_then(Value::extract_error);
            match (answer, to_load.take()) {
                (Err(error), Some(script)) if is_not_loaded(&error) => {
                    let mut load = redis::cmd("SCRIPT");
                    load.arg("LOAD").arg(&script.source);
                    if let Err(error) = load.query_async::<()>(&mut up.multiplexed()).await {
                        break Err(error);
                    }
                }
                (answer, _) => break answer,
            }
        };
        if let Err(error) = &answer
            && is_end_of_connection(error)
        {
            lose(&self.state, up, error);
        }
        answer
    }

    fn down(&self) -> RedisError {
        match &*self.state.borrow() {
            State::Up(_) => not_reached("it has just come back"),
            State::Down(why) | State::Rejected(why) => not_reached(why),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

/// Drops the connection `up`, so that the keeper reconnects.
fn lose(state: &watch::Sender<State>, up: &Arc<Connection>, why: &dyn std::fmt::Display) {
    state.send_if_modified(|state| {
        let is_current = matches!(state, State::Up(current) if Arc::ptr_eq(current, up));
        if is_current {
            *state = State::Down(why.to_string().into());
        }
        is_current
    });
}
