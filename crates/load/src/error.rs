//! Errors of a whole run, and failures of single requests.

use std::io;
use std::time::Duration;

/// The reason why a run could not be made. A server's mistakes during a run are in the report instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address does not have the required form.
    #[error(
        "`{given}` is not the address of a server: want http://HOST:PORT, https://HOST:PORT or HOST:PORT, without a path"
    )]
    BadAddress {
        /// The given address.
        given: String,
    },
    /// The CA certificates for the server are not PEM.
    #[error("the certificates that vouch for the server are not PEM")]
    NotPem(#[source] rustls::pki_types::pem::Error),
    /// The CA certificates for the server cannot be used.
    #[error("the certificates that vouch for the server cannot be used")]
    Unfit(#[from] rustls::Error),
    /// The token or a path contains characters that HTTP does not allow.
    #[error("a token or path cannot be sent")]
    Unsendable(#[from] http::Error),
    /// The plan lacks a license, a connection, a session, or another required part.
    #[error("the plan has no {missing}")]
    EmptyPlan {
        /// The missing part.
        missing: &'static str,
    },
    /// A request that must succeed before the run got no answer.
    #[error("cannot {doing} before the run")]
    Unprepared {
        /// The attempted step.
        doing: &'static str,
        /// The reason why no answer came.
        #[source]
        source: Failure,
    },
    /// A request that must succeed before the run got an unexpected answer.
    #[error("cannot {doing} before the run: the server answered {status}: {answer}")]
    Refused {
        /// The attempted step.
        doing: &'static str,
        /// The answer's status.
        status: u16,
        /// The start of the answer's body.
        answer: String,
    },
    /// The licenses have too few free seats for the plan's connections.
    #[error("a license has too few free seats: each connection wants {wanted}")]
    TooFewSeats {
        /// The number of seats required by each connection.
        wanted: usize,
    },
    /// A worker panicked.
    #[error("a worker broke off")]
    WorkerLost(#[from] tokio::task::JoinError),
}

/// A request without an answer, and so with an unknown outcome.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The server cannot be reached.
    #[error("cannot connect")]
    Connect(#[source] io::Error),
    /// The connection broke, or the received bytes are not HTTP.
    #[error("the connection broke")]
    Broken(#[from] hyper::Error),
    /// No answer came within the time limit.
    #[error("no answer within {} s", .waited.as_secs())]
    TimedOut {
        /// The time limit.
        waited: Duration,
    },
    /// The answer's body is longer than any body of the API.
    #[error("the answer is longer than {bytes_max} bytes")]
    TooLong {
        /// The limit.
        bytes_max: usize,
    },
}

impl Failure {
    /// Returns a short name for reports.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Connect(_) => "connect",
            Self::Broken(_) => "broken",
            Self::TimedOut { .. } => "timeout",
            Self::TooLong { .. } => "too_long",
        }
    }
}
