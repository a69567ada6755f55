//! The way to one server: one connection that all calls share, made again for ever (`keeper.rs`).

mod keeper;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, ErrorKind, RedisError, RedisResult, ServerErrorKind, Value};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use super::connect::identity;
use super::replicas::Replicas;
use super::script::Script;
use super::settings::{Address, ServerSettings};
use super::target::Target;
use crate::{Error, Identity};

/// How long a call waits for a connection that is being made.
pub(super) const CONNECTION_WAIT_MAX: Duration = Duration::from_secs(1);

/// The way to one server.
#[derive(Debug)]
pub(super) struct Link {
    settings: Arc<ServerSettings>,
    target: Target,
    state: watch::Sender<State>,
    /// The server's reason for a refusal of the latest write.
    refusal: Mutex<Option<Arc<str>>>,
    keeper: JoinHandle<()>,
}

#[derive(Clone, Debug)]
enum State {
    Up(Arc<Up>),
    /// Why not.
    Down(Arc<str>),
}

/// A connection, and who is at its other end.
#[derive(Debug)]
pub(super) struct Up {
    connection: MultiplexedConnection,
    pub(super) identity: Identity,
    pub(super) replicas: Replicas,
    identity_doubted: Notify,
}

impl Up {
    fn new(
        settings: &Arc<ServerSettings>,
        address: Address,
        connection: MultiplexedConnection,
        identity: Identity,
    ) -> Self {
        let replicas = Replicas::new(Arc::clone(settings), address, identity.clone());
        Self { connection, identity, replicas, identity_doubted: Notify::new() }
    }

    /// The connection, which many may use at once.
    pub(super) fn connection(&self) -> MultiplexedConnection {
        self.connection.clone()
    }

    /// Asks for the identity to be read again at once: the server refused a call that named it.
    pub(super) fn doubt_identity(&self) {
        self.identity_doubted.notify_one();
    }
}

impl Link {
    pub(super) fn new(settings: Arc<ServerSettings>, target: Target) -> Arc<Self> {
        let (state, seen) = watch::channel(State::Down("it was never reached".into()));
        let keeper = tokio::spawn(keeper::keep(Arc::clone(&settings), target.clone(), state.clone(), seen));
        Arc::new(Self { settings, target, state, refusal: Mutex::default(), keeper })
    }

    /// Reads the identity of the server anew. Later calls carry the identity that was read.
    pub(super) async fn identity_now(&self) -> RedisResult<Identity> {
        let up = self.up().await?;
        match identity(&mut up.connection()).await {
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

    /// Notes what came of a try to write on the server, and logs a change.
    pub(super) fn note_write(&self, written: &RedisResult<Value>) {
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
    pub(super) fn refusal(&self) -> Option<Arc<str>> {
        self.refusal.lock().clone()
    }

    /// Where it leads at present.
    pub(super) async fn address(&self) -> RedisResult<Address> {
        self.target.address(&self.settings).await
    }

    /// The connection, if there is one.
    pub(super) fn up_now(&self) -> Option<Arc<Up>> {
        match &*self.state.borrow() {
            State::Up(up) => Some(Arc::clone(up)),
            State::Down(_) => None,
        }
    }

    /// The connection, once there is one.
    pub(super) async fn up(&self) -> RedisResult<Arc<Up>> {
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

    /// Sends a command on a connection of this link, after its script has been loaded if need be.
    pub(super) async fn run(&self, up: &Arc<Up>, script: Option<&Script>, call: &Cmd) -> RedisResult<Value> {
        match (self.send(up, call).await, script) {
            (Err(error), Some(script)) if is(&error, ServerErrorKind::NoScript) => {
                self.send(up, redis::cmd("SCRIPT").arg("LOAD").arg(&script.source)).await?;
                self.send(up, call).await
            }
            (answer, _) => answer,
        }
    }

    async fn send(&self, up: &Arc<Up>, command: &Cmd) -> RedisResult<Value> {
        let answer = up.connection().send_packed_command(command).await;
        let answer = answer.and_then(Value::extract_error);
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

/// Gives a connection up, so that another is made.
fn lose(state: &watch::Sender<State>, up: &Arc<Up>, why: &dyn std::fmt::Display) {
    state.send_if_modified(|state| {
        let is_it = matches!(state, State::Up(current) if Arc::ptr_eq(current, up));
        if is_it {
            *state = State::Down(why.to_string().into());
        }
        is_it
    });
}

/// Whether nothing more is to be expected of a connection: it broke, it hangs, or its server is not the one that may
/// be written to.
fn is_end_of_connection(error: &RedisError) -> bool {
    error.is_io_error()
        || error.is_connection_dropped()
        || error.is_timeout()
        || is(error, ServerErrorKind::ReadOnly)
}

fn is(error: &RedisError, kind: ServerErrorKind) -> bool {
    error.kind() == ErrorKind::Server(kind)
}

/// Whether another server has the slot, or will soon; nothing was done.
pub(super) fn is_moved(error: &RedisError) -> bool {
    is(error, ServerErrorKind::Moved)
}

/// Whether a call's connection was lost under it, by whichever side.
pub(super) fn is_cut_off(error: &RedisError) -> bool {
    error.is_connection_dropped() && !error.is_timeout()
}

/// There is no connection, for this reason.
pub(super) fn not_reached(why: &str) -> RedisError {
    (ErrorKind::Io, "Redis cannot be reached", why.to_owned()).into()
}

/// The error as a registry's: whether or not what was asked for was done.
pub(super) fn failed(error: RedisError) -> Error {
    if error.is_timeout() { Error::TimedOut } else { Error::Unavailable(Box::new(error)) }
}
