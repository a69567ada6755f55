//! The outcome of a request, as the driver reports it.

use std::fmt;
use std::time::Duration;

/// An HTTP response that arrived whole. `Debug` leaves out the body, which may have a release code.
#[derive(Clone, PartialEq, Eq)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The header `Retry-After`, if it is a number of seconds.
    pub retry_after: Option<Duration>,
    /// The header `X-Request-Id`: the request in the server's log.
    pub request_id: Option<Box<str>>,
    /// The body.
    pub body: Vec<u8>,
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, retry_after, request_id, body: _ } = self;
        f.debug_struct("Response")
            .field("status", status)
            .field("retry_after", retry_after)
            .field("request_id", request_id)
            .finish_non_exhaustive()
    }
}

/// The way in which a request got no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// No connection: the server refuses, or its name is wrong.
    #[error("the connection was refused")]
    Refused,
    /// No connection: the certificate of the server was not accepted.
    #[error("the server's certificate was not accepted")]
    Certificate,
    /// No connection: the process or the system has no file descriptor, or no memory, for one.
    #[error("this process has no file descriptor or no memory for a connection")]
    NoResources,
    /// The connection broke before the request was sent.
    #[error("the connection broke before the request was sent")]
    ResetBeforeSend,
    /// The connection broke after the request was sent; the server may have carried it out.
    #[error("the connection broke before the answer")]
    ResetAfterSend,
    /// No response within the request's timeout; the server may have carried it out.
    #[error("no answer in time")]
    Timeout,
    /// The response ended before it was whole.
    #[error("the answer broke off")]
    Truncated,
    /// The response is no HTTP, or no answer of a Seatkeeper server.
    #[error("the answer is not one of a Seatkeeper server")]
    Garbage,
    /// The token source has no token.
    #[error("the token source has no token")]
    NoToken,
    /// The server does not accept the token, nor a fresh one.
    #[error("the server does not accept the token")]
    Unauthenticated,
    /// The server answered that it cannot serve now.
    #[error("the server cannot answer now")]
    Unavailable,
}

impl Failure {
    /// Returns true if the server may have carried the request out.
    pub(crate) fn may_have_arrived(self) -> bool {
        match self {
            Self::ResetAfterSend | Self::Timeout | Self::Truncated | Self::Garbage | Self::Unavailable => {
                true
            }
            Self::Refused
            | Self::Certificate
            | Self::NoResources
            | Self::ResetBeforeSend
            | Self::NoToken
            | Self::Unauthenticated => false,
        }
    }
}
