//! The way to one server: one connection that all calls share, made again for ever.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, ServerErrorKind, Value};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::connect::{connect, identity};
use super::scripts::Script;
use super::settings::{Address, Settings};
use super::target::Target;
use crate::{Error, Identity};

/// The first pause before another try to connect, and the longest.
const RETRY_MIN: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(30);

/// How long a call waits for a connection that is being made.
const CONNECTION_WAIT_MAX: Duration = Duration::from_secs(1);

/// The way to one server.
#[derive(Debug)]
pub(super) struct Link {
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
}

impl Link {
    pub(super) fn new(settings: Arc<Settings>, target: Target) -> Arc<Self> {
        let (state, seen) = watch::channel(State::Down("it was never reached".into()));
        let keeper = tokio::spawn(keep(settings, target, state.clone(), seen));
        Arc::new(Self { state, keeper })
    }

    /// The connection, once there is one.
    pub(super) async fn up(&self) -> Result<Arc<Up>, Error> {
        if let State::Up(up) = &*self.state.borrow() {
            return Ok(Arc::clone(up));
        }
        let mut state = self.state.subscribe();
        let up =
            tokio::time::timeout(CONNECTION_WAIT_MAX, state.wait_for(|state| matches!(state, State::Up(_))));
        match up.await.map(|waited| waited.map(|state| state.clone())) {
            Ok(Ok(State::Up(up))) => Ok(up),
            _ => Err(self.unavailable()),
        }
    }

    /// Runs a script on a connection of this link, after it has been loaded if need be.
    pub(super) async fn run(&self, up: &Arc<Up>, script: &Script, call: &Cmd) -> Result<Value, RedisError> {
        match self.send(up, call).await {
            Err(error) if is(&error, ServerErrorKind::NoScript) => {
                self.send(up, redis::cmd("SCRIPT").arg("LOAD").arg(&script.source)).await?;
                self.send(up, call).await
            }
            other => other,
        }
    }

    /// Sends a command on a connection of this link.
    pub(super) async fn send(&self, up: &Arc<Up>, command: &Cmd) -> Result<Value, RedisError> {
        let answer = up.connection.clone().send_packed_command(command).await;
        let answer = answer.and_then(Value::extract_error);
        if let Err(error) = &answer
            && is_end_of_connection(error)
        {
            self.lost(up, error);
        }
        answer
    }

    /// Gives a connection up, so that another is made.
    pub(super) fn lost(&self, up: &Arc<Up>, why: &impl ToString) {
        self.state.send_if_modified(|state| {
            let is_it = matches!(state, State::Up(current) if Arc::ptr_eq(current, up));
            if is_it {
                *state = State::Down(why.to_string().into());
            }
            is_it
        });
    }

    fn unavailable(&self) -> Error {
        let why = match &*self.state.borrow() {
            State::Up(_) => "it has just come back".into(),
            State::Down(why) => Arc::clone(why),
        };
        Error::Unavailable(why.as_ref().into())
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

/// Connects, and again whenever the connection is lost.
async fn keep(
    settings: Arc<Settings>,
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
                state.send_replace(State::Up(Arc::new(up)));
                // The channel is never closed, for this holds one end of it.
                let _ = seen.wait_for(|state| matches!(state, State::Down(_))).await;
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

async fn reach(settings: &Settings, target: &Target) -> Result<(Address, Up), RedisError> {
    let address = target.address(settings).await?;
    let mut connection = connect(settings, &address).await?;
    let identity = identity(&mut connection).await?;
    Ok((address, Up { connection, identity }))
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
    error.kind() == redis::ErrorKind::Server(kind)
}

/// The error as a registry's: whether or not what was asked for was done.
pub(super) fn failed(error: RedisError) -> Error {
    if error.is_timeout() { Error::TimedOut } else { Error::Unavailable(Box::new(error)) }
}
