//! The way to one server: one connection that all calls share, made again for ever.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, ErrorKind, RedisError, RedisResult, ServerErrorKind, Value};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::connect::{connect, identity, unfit};
use super::replicas::Replicas;
use super::script::Script;
use super::settings::{Address, ServerSettings};
use super::target::Target;
use crate::{Error, Identity};

/// The first pause before another try to connect, and the longest.
const RETRY_MIN: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(30);

/// How long a call waits for a connection that is being made.
pub(super) const CONNECTION_WAIT_MAX: Duration = Duration::from_secs(1);

/// How often it is made sure that the server is still the one that the link should lead to.
const PLACE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// How often it is made sure that the server is still fit for seats.
const FITNESS_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// The way to one server.
#[derive(Debug)]
pub(super) struct Link {
    settings: Arc<ServerSettings>,
    target: Target,
    state: watch::Sender<State>,
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
}

impl Up {
    /// The connection, which many may use at once.
    pub(super) fn connection(&self) -> MultiplexedConnection {
        self.connection.clone()
    }
}

impl Link {
    pub(super) fn new(settings: Arc<ServerSettings>, target: Target) -> Arc<Self> {
        let (state, seen) = watch::channel(State::Down("it was never reached".into()));
        let keeper = tokio::spawn(keep(Arc::clone(&settings), target.clone(), state.clone(), seen));
        Arc::new(Self { settings, target, state, keeper })
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

/// Connects, and again whenever the connection is lost.
async fn keep(
    settings: Arc<ServerSettings>,
    target: Target,
    state: watch::Sender<State>,
    mut seen: watch::Receiver<State>,
) {
    let mut pause = RETRY_MIN;
    loop {
        match reach(&settings, &target).await {
            Ok((address, up)) => {
                tracing::info!(redis = %address, "connected to Redis");
                pause = RETRY_MIN;
                let up = Arc::new(up);
                state.send_replace(State::Up(Arc::clone(&up)));
                tokio::select! {
                    // The channel is never closed, for this holds one end of it.
                    _ = seen.wait_for(|state| matches!(state, State::Down(_))) => {}
                    () = until_elsewhere(&settings, &target, &address) => {
                        lose(&state, &up, &"another server is the primary now");
                    }
                    () = warn_while_unfit(&up) => {}
                }
            }
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "Redis cannot be reached");
                state.send_replace(State::Down(error.to_string().into()));
                tokio::time::sleep(jittered(pause)).await;
                pause = (pause * 2).min(RETRY_MAX);
            }
        }
    }
}

async fn reach(settings: &Arc<ServerSettings>, target: &Target) -> RedisResult<(Address, Up)> {
    let address = target.address(settings).await?;
    let mut connection = connect(settings, &address).await?;
    let identity = identity(&mut connection).await?;
    let replicas = Replicas::new(Arc::clone(settings), address.clone(), identity.clone());
    Ok((address, Up { connection, identity, replicas }))
}

/// Returns once the target is at another address. While nobody says where it is, it stays where it was.
async fn until_elsewhere(settings: &ServerSettings, target: &Target, address: &Address) {
    loop {
        tokio::time::sleep(PLACE_CHECK_INTERVAL).await;
        if target.address(settings).await.is_ok_and(|now| now != *address) {
            return;
        }
    }
}

/// Says for ever, as long as it is so, that the server would end sessions by itself.
async fn warn_while_unfit(up: &Up) {
    loop {
        if let Ok(Some(why)) = unfit(&mut up.connection()).await {
            tracing::error!("Redis is not fit for seats: {why}");
        }
        tokio::time::sleep(FITNESS_CHECK_INTERVAL).await;
    }
}

/// Between half of a pause and all of it, so that nodes do not come back in one instant.
fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(rand::random_range(0.5..1.0))
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
