//! Classifies the errors of a call by their consequence for the call and for the connection.

use std::error::Error;
use std::io;
use std::sync::Arc;

use redis::{ErrorKind, RedisError, ServerErrorKind};

/// Returns the error of a call without a reachable server, for the reason `why`.
pub fn not_reached(why: &str) -> RedisError {
    (ErrorKind::Io, "Redis cannot be reached", why.to_owned()).into()
}

/// Returns `true` if the connection is unusable: broken, or to a server that hangs or became a replica.
pub(crate) fn is_end_of_connection(error: &RedisError) -> bool {
    is_without_answer(error) || is(error, ServerErrorKind::ReadOnly)
}

/// Returns `true` if the server did not answer: the connection failed, or the answer is late.
pub(crate) fn is_without_answer(error: &RedisError) -> bool {
    error.is_io_error() || error.is_connection_dropped() || error.is_timeout()
}

/// Returns `true` if the slot has moved, or is about to move, to a different server. The call changed
/// nothing.
pub(crate) fn is_moved(error: &RedisError) -> bool {
    is(error, ServerErrorKind::Moved)
}

/// Returns `true` if either side lost the connection before the reply. The call may have been carried out.
pub(crate) fn is_cut_off(error: &RedisError) -> bool {
    error.is_connection_dropped() && !error.is_timeout()
}

/// Returns `true` if the server has not loaded the called script.
pub(crate) fn is_not_loaded(error: &RedisError) -> bool {
    is(error, ServerErrorKind::NoScript)
}

/// Returns `true` if the server does not accept the node, or a file of the node's settings cannot be read: a login, a right
/// or a certificate is wrong. An operator must act.
pub(crate) fn is_rejection(error: &RedisError) -> bool {
    let by_kind = matches!(error.kind(), ErrorKind::AuthenticationFailed | ErrorKind::InvalidClientConfig);
    let by_code = matches!(error.code(), Some("NOAUTH" | "WRONGPASS" | "NOPERM"));
    // TLS reports an untrusted certificate as invalid data.
    let by_tls = io_error(error).is_some_and(|error| error.kind() == io::ErrorKind::InvalidData);
    by_kind || by_code || by_tls
}

/// Returns the error of the connection behind the client's error.
fn io_error(error: &RedisError) -> Option<&io::Error> {
    error.source()?.downcast_ref::<Arc<dyn Error + Send + Sync>>()?.downcast_ref()
}

fn is(error: &RedisError, kind: ServerErrorKind) -> bool {
    error.kind() == ErrorKind::Server(kind)
}

#[cfg(test)]
mod tests;
