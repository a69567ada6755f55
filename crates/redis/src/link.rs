//! The link to one server: one connection that all calls share and that a background task makes again for ever (`keeper.rs`).

mod keeper;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, RedisResult, Value};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use crate::connect::identity;
use crate::error::{is_end_of_connection, is_not_loaded, not_reached};
use crate::replicas::Replicas;
use crate::script::Script;
use crate::settings::{Address, ServerSettings};
use crate::target::Target;

/// How long a call waits for a connection that is being made.
pub(crate) const CONNECTION_WAIT_MAX: Duration = Duration::from_secs(1);

/// The link to one server. Dropping the link ends its connection.
#[derive(Debug)]
pub struct Link {
    settings: Arc<ServerSettings>,
    target: Target,
    state: watch::Sender<State>,
    /// The server's reason for a refusal of the latest write.
    refusal: Mutex<Option<Arc<str>>>,
    keeper: JoinHandle<()>,
}

#[derive(Clone, Debug)]
enum State {
    Up(Arc<Connection>),
    /// There is no connection, for this reason.
    Down(Arc<str>),
}

/// A connection to a server, and the identity of the memory at its other end.
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

    /// Returns the identity of the server's memory: it changes when the server restarts, and when a replica that may lag is
    /// promoted.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Returns the replicas of the server.
    pub fn replicas(&self) -> &Replicas {
        &self.replicas
    }

    /// Has the identity read again at once, after the server refused a call that named it.
    pub fn doubt_identity(&self) {
        self.identity_doubted.notify_one();
    }

    /// Returns a handle of the connection, which many may use at once.
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

    /// Reads the identity of the server's memory anew. Later calls carry the identity that was read.
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

    /// Notes the outcome of a write on the server, and logs when it differs from the outcome before.
    pub fn note_write(&self, written: &RedisResult<Value>) {
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

    /// Returns the server's reason for a refusal of the latest write; `None` if the write succeeded.
    pub(crate) fn refusal(&self) -> Option<Arc<str>> {
        self.refusal.lock().clone()
    }

    /// Returns the address of the server at present.
    pub(crate) async fn address(&self) -> RedisResult<Address> {
        self.target.address(&self.settings).await
    }

    /// Returns the connection, if there is one.
    pub(crate) fn up_now(&self) -> Option<Arc<Connection>> {
        match &*self.state.borrow() {
            State::Up(up) => Some(Arc::clone(up)),
            State::Down(_) => None,
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

    /// Sends a command over a connection of this link, and again once `script` is loaded if the server lacks it.
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
            State::Down(why) => not_reached(why),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

/// Gives up a connection, so that the keeper makes another.
fn lose(state: &watch::Sender<State>, up: &Arc<Connection>, why: &dyn std::fmt::Display) {
    state.send_if_modified(|state| {
        let is_current = matches!(state, State::Up(current) if Arc::ptr_eq(current, up));
        if is_current {
            *state = State::Down(why.to_string().into());
        }
        is_current
    });
}
