//! Errors of the client.

use seatkeeper_client_core::{Failure, Loss, Problem, Refusal};

/// The reason why there is no client, or no seat.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address of the server is none.
    #[error("{url} is not the address of a server: want http://HOST:PORT or https://HOST:PORT")]
    Address {
        /// The address as it was given.
        url: String,
    },
    /// The certificates are not PEM, or the HTTP client cannot be made.
    #[error("the HTTP client cannot be made")]
    Http(#[source] reqwest::Error),
    /// The certificates of [`ClientBuilder::certificates`](crate::ClientBuilder::certificates) are none.
    #[error("there is no certificate among the certificate authorities: want PEM")]
    NoCertificate,
    /// The machine has no certificate authorities for a server at `https://`.
    #[error(
        "this machine has no certificate authorities: install them (the package ca-certificates), or give the client \
         the CA of the server"
    )]
    NoAuthorities(#[source] reqwest::Error),
    /// The client was built outside of a Tokio runtime.
    #[error("the client needs a Tokio runtime: build it within one")]
    NoRuntime,
    /// The thread of a blocking client cannot be started.
    #[error("the thread of the client cannot be started")]
    Thread(#[source] std::io::Error),
    /// The server refused the seat.
    #[error("{}: {}", .0.code(), .0.detail.as_deref().unwrap_or(&.0.title))]
    Denied(Box<Problem>),
    /// The server gave no usable answer in time.
    #[error("the server cannot be reached: {0}")]
    Offline(Failure),
    /// The program cancelled the acquire.
    #[error("the acquire was cancelled")]
    Cancelled,
    /// The handle belongs to the parent process: a forked child builds a client of its own (blocking client).
    #[error("the handle belongs to the parent process: build a client after the fork")]
    NotOwner,
    /// The client was closed, the runtime has shut down, or the task of the client has failed.
    #[error("the client is closed")]
    Closed,
}

impl Error {
    /// Returns the code of the error: the kind of problem, `offline`, `cancelled`, `closed`, `internal`, `misuse` or
    /// `not-owner`.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::Denied(problem) => problem.code(),
            Self::Offline(_) | Self::NoAuthorities(_) => "offline",
            Self::Cancelled => "cancelled",
            Self::Closed => "closed",
            Self::NotOwner => "not-owner",
            Self::Thread(_) => "internal",
            Self::Address { .. } | Self::Http(_) | Self::NoCertificate | Self::NoRuntime => "misuse",
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Denied(problem) => Self::Denied(problem),
            Refusal::Unreachable(failure) => Self::Offline(failure),
        }
    }
}

/// The reason why a program must not go on at this moment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// The seat is lost.
    #[error("the seat is lost: {}", .0.reason.name())]
    Lost(Loss),
    /// The seat is being acquired again, or its deadline passed a moment ago.
    #[error("the seat is not confirmed")]
    Unconfirmed,
    /// The program gave the seat up.
    #[error("the seat is released")]
    Released,
}
