//! Kinds of errors of a call, by what they say of the call and of its connection.

use redis::{ErrorKind, RedisError, ServerErrorKind};

/// Returns the error of a call that had no server to go to, for this reason.
pub fn not_reached(why: &str) -> RedisError {
    (ErrorKind::Io, "Redis cannot be reached", why.to_owned()).into()
}

/// Returns whether a connection is of no more use: a broken connection, a server that hangs, or a server that became a replica.
pub(crate) fn is_end_of_connection(error: &RedisError) -> bool {
    error.is_io_error()
        || error.is_connection_dropped()
        || error.is_timeout()
        || is(error, ServerErrorKind::ReadOnly)
}

/// Returns whether another server has the slot, or will have it soon. The call changed nothing.
pub(crate) fn is_moved(error: &RedisError) -> bool {
    is(error, ServerErrorKind::Moved)
}

/// Returns whether the connection was lost before the reply, by whichever side. The call may have been carried out.
pub(crate) fn is_cut_off(error: &RedisError) -> bool {
    error.is_connection_dropped() && !error.is_timeout()
}

/// Returns whether the server has not loaded the script that was called.
pub(crate) fn is_not_loaded(error: &RedisError) -> bool {
    is(error, ServerErrorKind::NoScript)
}

fn is(error: &RedisError, kind: ServerErrorKind) -> bool {
    error.kind() == ErrorKind::Server(kind)
}
