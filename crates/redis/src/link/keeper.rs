//! The background task of a link: connects, checks the server's identity, and drops unusable connections.

use std::sync::Arc;
use std::time::Duration;

use redis::{RedisError, RedisResult};
use tokio::sync::watch;

use super::{Connection, State, lose};
use crate::connect::{connect, identity, unfit};
use crate::error::is_rejection;
use crate::settings::{Address, ServerSettings};
use crate::target::Target;

/// The shortest and the longest backoff between attempts to connect: a node is connected within seconds of
/// the server's return.
const RETRY_MIN: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(2);

/// Interval of looking up the target's address.
const ADDRESS_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Interval of reading the server's identity: see [`identity`].
const IDENTITY_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Minimum time between two readings of the identity, for any number of refused calls.
const IDENTITY_CHECK_PAUSE: Duration = Duration::from_millis(50);

/// Interval of checking the server's fitness for seats.
const FITNESS_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// Drops the present connection.
fn lose_any(state: &watch::Sender<State>, why: &str) {
    state.send_replace(State::Down(why.into()));
}

/// Sets the identity of a connection to the identity just read, if different.
pub(crate) async fn replace_identity(
    settings: &Arc<ServerSettings>,
    target: &Target,
    state: &watch::Sender<State>,
    up: &Arc<Connection>,
    identity: &Arc<str>,
) {
    if up.identity == *identity {
        return;
    }
    tracing::warn!(
        was = &*up.identity,
        is = &**identity,
        "the memory of Redis was replaced: its buckets are rebuilt from the ledger"
    );
    let Ok(address) = target.address(settings).await else {
        return lose(state, up, &"its address is not known");
    };
    let next = Arc::new(Connection::new(settings, address, up.multiplexed(), Arc::clone(identity)));
    state.send_if_modified(|state| {
        let is_current = matches!(state, State::Up(current) if Arc::ptr_eq(current, up));
        if is_current {
            *state = State::Up(next);
        }
        is_current
    });
}

/// Keeps the identity up to date. Returns the reason after the server was demoted or lost.
async fn until_no_primary(
    settings: &Arc<ServerSettings>,
    target: &Target,
    state: &watch::Sender<State>,
) -> String {
    loop {
        let State::Up(up) = state.borrow().clone() else { return "it is gone".to_owned() };
        // Wakes after the interval, or early after a refused call.
        let _ = tokio::time::timeout(IDENTITY_CHECK_INTERVAL, up.identity_doubted.notified()).await;
        tokio::time::sleep(IDENTITY_CHECK_PAUSE).await;
        match identity(&mut up.multiplexed()).await {
            Ok(identity) => replace_identity(settings, target, state, &up, &identity).await,
            Err(error) => return error.to_string(),
        }
    }
}

/// Connects, and reconnects after every loss of the connection.
pub(crate) async fn keep(
    settings: Arc<ServerSettings>,
    target: Target,
    state: watch::Sender<State>,
    mut seen: watch::Receiver<State>,
) {
    let mut pause = RETRY_MIN;
    // Whether the failure logged last was a rejection; `None` after a connection.
    let mut reported = None;
    loop {
        match reach(&settings, &target).await {
            Ok((address, up)) => {
                tracing::info!(redis = %address, "connected to Redis");
                (pause, reported) = (RETRY_MIN, None);
                let up = Arc::new(up);
                state.send_replace(State::Up(Arc::clone(&up)));
                tokio::select! {
                    // The channel never closes, because `state` is a sender.
                    _ = seen.wait_for(|state| !matches!(state, State::Up(_))) => {}
                    () = until_elsewhere(&settings, &target, &address) => {
                        lose_any(&state, "another server is the primary now");
                    }
                    why = until_no_primary(&settings, &target, &state) => lose_any(&state, &why),
                    () = warn_while_unfit(&up) => {}
                }
            }
            Err(error) => {
                let is_rejection = is_rejection(&error);
                if reported == Some(is_rejection) {
                    tracing::debug!(redis = %target, %error, "there still is no connection to Redis");
                } else {
                    report(&target, &error, is_rejection);
                }
                reported = Some(is_rejection);
                let why = error.to_string().into();
                state.send_replace(if is_rejection { State::Rejected(why) } else { State::Down(why) });
                tokio::time::sleep(jittered(pause)).await;
                pause = (pause * 2).min(RETRY_MAX);
            }
        }
    }
}

/// Logs a failed attempt to connect, with the remedy.
fn report(target: &Target, error: &RedisError, is_rejection: bool) {
    if is_rejection {
        tracing::error!(
            redis = %target,
            %error,
            "Redis does not accept this node, so calls of its buckets fail: check the password, the rights of the user, \
             the certificates and their files; the node reads the files again and reconnects with backoff"
        );
    } else {
        tracing::warn!(
            redis = %target,
            %error,
            "Redis cannot be reached: the node reconnects with backoff, and calls of its buckets fail until then; \
             check the server and the network"
        );
    }
}

async fn reach(settings: &Arc<ServerSettings>, target: &Target) -> RedisResult<(Address, Connection)> {
    let address = target.address(settings).await?;
    let mut connection = connect(settings, &address).await?;
    let identity = identity(&mut connection).await?;
    let up = Connection::new(settings, address.clone(), connection, identity);
    Ok((address, up))
}

/// Returns after the target has a new address. A failed look-up is ignored.
async fn until_elsewhere(settings: &ServerSettings, target: &Target, address: &Address) {
    loop {
        tokio::time::sleep(ADDRESS_CHECK_INTERVAL).await;
        if target.address(settings).await.is_ok_and(|now| now != *address) {
            return;
        }
    }
}

/// Logs repeatedly while the server would evict sessions. Never returns.
async fn warn_while_unfit(up: &Connection) {
    loop {
        if let Ok(Some(why)) = unfit(&mut up.multiplexed()).await {
            tracing::error!("Redis is not fit for seats: {why}");
        }
        tokio::time::sleep(FITNESS_CHECK_INTERVAL).await;
    }
}

/// Returns a random backoff from half to full length (jitter), so that nodes do not reconnect simultaneously.
fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(rand::random_range(0.5..1.0))
}
