//! Why a run could not be made, and why one request has no answer.

use std::io;
use std::time::Duration;

/// The run could not be made. What a server does wrong during a run is in its report instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address is none that can be asked so.
    #[error(
        "`{given}` is not an address: want host:port, http://host:port, or https://host:port and who vouches for it"
    )]
    BadAddress {
        /// What was given.
        given: String,
    },
    /// What should vouch for the server is not PEM.
    #[error("the certificates that vouch for the server are not PEM")]
    NotPem(#[source] rustls::pki_types::pem::Error),
    /// What should vouch for the server cannot.
    #[error("the certificates that vouch for the server cannot be used")]
    Unfit(#[from] rustls::Error),
    /// The token or a path holds characters that HTTP does not allow.
    #[error("a token or path cannot be sent")]
    Unsendable(#[from] http::Error),
    /// The plan names no license, no worker, or no round.
    #[error("the plan has no {missing}")]
    EmptyPlan {
        /// What is missing.
        missing: &'static str,
    },
    /// A request that must succeed before the run had no answer.
    #[error("cannot {doing} before the run")]
    Unprepared {
        /// What was tried.
        doing: &'static str,
        /// Why there was no answer.
        #[source]
        source: Failure,
    },
    /// A request that must succeed before the run was answered otherwise.
    #[error("cannot {doing} before the run: the server answered {status}: {answer}")]
    Refused {
        /// What was tried.
        doing: &'static str,
        /// The answer's status.
        status: u16,
        /// The start of the answer's body.
        answer: String,
    },
    /// The licenses have too few free seats for each connection to hold what the plan wants.
    #[error("a license has too few free seats: each connection wants {wanted}")]
    TooFewSeats {
        /// Seats that each connection wants.
        wanted: usize,
    },
    /// A worker panicked.
    #[error("a worker broke off")]
    WorkerLost(#[from] tokio::task::JoinError),
}

/// One request had no answer, so what became of it is unknown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The server cannot be reached.
    #[error("cannot connect")]
    Connect(#[source] io::Error),
    /// The connection broke, or what came is not HTTP.
    #[error("the connection broke")]
    Broken(#[from] hyper::Error),
    /// No answer within the time that a request may take.
    #[error("no answer within {} s", .waited.as_secs())]
    TimedOut {
        /// How long it was waited for.
        waited: Duration,
    },
    /// The answer's body is longer than any that this API gives.
    #[error("the answer is longer than {bytes_max} bytes")]
    TooLong {
        /// The bound.
        bytes_max: usize,
    },
}

impl Failure {
    /// A short name for reports.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Connect(_) => "connect",
            Self::Broken(_) => "broken",
            Self::TimedOut { .. } => "timeout",
            Self::TooLong { .. } => "too_long",
        }
    }
}
