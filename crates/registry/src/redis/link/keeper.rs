//! Keeps a link up: connects, reads who is at the other end again and again, and gives up what is of no use any more.

use std::sync::Arc;
use std::time::Duration;

use redis::RedisResult;
use tokio::sync::watch;

use super::super::connect::{connect, identity, unfit};
use super::super::settings::{Address, ServerSettings};
use super::super::target::Target;
use super::{State, Up, lose};
use crate::Identity;

/// The first pause before another try to connect, and the longest: a server that is back is to serve within seconds.
const RETRY_MIN: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(2);

/// How often it is made sure that the server is still the one that the link should lead to.
const PLACE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Interval at which the identity of the server is read again: see [`identity`].
const IDENTITY_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The shortest time between two readings of the identity, however many calls are refused.
const IDENTITY_CHECK_PAUSE: Duration = Duration::from_millis(50);

/// How often it is made sure that the server is still fit for seats.
const FITNESS_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// Gives the present connection up, whichever it is.
fn lose_any(state: &watch::Sender<State>, why: &str) {
    state.send_replace(State::Down(why.into()));
}

/// Names the server from now on by an identity that was read on a connection, if that is another one than before.
pub(super) async fn replace_identity(
    settings: &Arc<ServerSettings>,
    target: &Target,
    state: &watch::Sender<State>,
    up: &Arc<Up>,
    identity: &Identity,
) {
    if up.identity == *identity {
        return;
    }
    tracing::warn!(
        was = &*up.identity.0,
        is = &*identity.0,
        "the memory of Redis was replaced: its buckets are rebuilt from the ledger"
    );
    let Ok(address) = target.address(settings).await else {
        return lose(state, up, &"its address is not known");
    };
    let next = Arc::new(Up::new(settings, address, up.connection(), identity.clone()));
    state.send_if_modified(|state| {
        let is_current = matches!(state, State::Up(current) if Arc::ptr_eq(current, up));
        if is_current {
            *state = State::Up(next);
        }
        is_current
    });
}

/// Keeps the identity up to date. Returns why the connection is of no use any more, once it is not.
async fn until_no_primary(
    settings: &Arc<ServerSettings>,
    target: &Target,
    state: &watch::Sender<State>,
) -> String {
    loop {
        let State::Up(up) = state.borrow().clone() else { return "it is gone".to_owned() };
        // The check runs after the interval, or earlier after a refused call.
        let _ = tokio::time::timeout(IDENTITY_CHECK_INTERVAL, up.identity_doubted.notified()).await;
        tokio::time::sleep(IDENTITY_CHECK_PAUSE).await;
        match identity(&mut up.connection()).await {
            Ok(identity) => replace_identity(settings, target, state, &up, &identity).await,
            Err(error) => return error.to_string(),
        }
    }
}

/// Connects, and again whenever the connection is lost.
pub(super) async fn keep(
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
                        lose_any(&state, "another server is the primary now");
                    }
                    why = until_no_primary(&settings, &target, &state) => lose_any(&state, &why),
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
    let up = Up::new(settings, address.clone(), connection, identity);
    Ok((address, up))
}

/// Returns once the target has another address. A failed look-up of the address changes nothing.
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
