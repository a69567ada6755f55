//! Faults between the registry and its database, divided by outcome: refused, conflict, unknown.

use std::error::Error as StdError;

use seatkeeper_core::Bucket;
use tokio::time::error::Elapsed;

use super::unreadable::Unreadable;
use crate::Error;

/// SQLSTATE of `registry.write`: data under the decision has changed.
const CHANGED: &str = "SK001";
/// SQLSTATE of `registry.rebuild_…`: the bucket is in another epoch or stage.
const OTHERWISE: &str = "SK002";
/// SQLSTATEs of transactions that collided, to be retried: serialization failure, deadlock, unique violation.
const IN_THE_WAY: [&str; 3] = ["40001", "40P01", "23505"];

/// The reason why a step was not made, or has an unknown outcome.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("what was decided on has changed meanwhile")]
    Conflict,
    #[error("the bucket is not served in the epoch that is known here")]
    NotServing(Bucket),
    #[error("no answer came in time")]
    TimedOut(#[from] Elapsed),
    #[error("what is stored cannot be read")]
    Unreadable(#[from] Unreadable),
    #[error("the database holds what it never should: {0}")]
    Odd(&'static str),
    #[error("the database did not do it")]
    Refused(#[source] sqlx::Error),
    /// The connection was lost during the statement or commit.
    #[error("the database did not say whether it did it")]
    Unknown(#[source] sqlx::Error),
}

impl Fault {
    /// Classifies an error of a step of a bucket's rebuild.
    pub(super) fn in_bucket(error: sqlx::Error, bucket: Bucket) -> Self {
        let code = error.as_database_error().and_then(|error| error.code());
        if code.is_some_and(|code| code == OTHERWISE) {
            Self::NotServing(bucket)
        } else {
            Self::of_commit(error)
        }
    }

    /// Classifies an error of a commit, or of a statement that commits by itself.
    pub(super) fn of_commit(error: sqlx::Error) -> Self {
        // An error reported by the database means that nothing was committed.
        if error.as_database_error().is_some() { Self::from(error) } else { Self::Unknown(error) }
    }
}

impl From<sqlx::Error> for Fault {
    /// Classifies an error of a statement that commits nothing by itself.
    fn from(error: sqlx::Error) -> Self {
        let code = error.as_database_error().and_then(|error| error.code());
        let conflict = code.is_some_and(|code| code == CHANGED || IN_THE_WAY.contains(&&*code));
        if conflict { Self::Conflict } else { Self::Refused(error) }
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::NotServing(bucket) => Self::NotServing { bucket },
            Fault::TimedOut(_) => Self::TimedOut,
            Fault::Unknown(error) => {
                tracing::warn!(
                    error = &error as &dyn StdError,
                    "connection to PostgreSQL lost during a write; the outcome is unknown, and the client must retry"
                );
                Self::TimedOut
            }
            Fault::Conflict | Fault::Unreadable(_) | Fault::Odd(_) | Fault::Refused(_) => {
                Self::Unavailable(Box::new(fault))
            }
        }
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        Fault::from(error).into()
    }
}

impl From<Elapsed> for Error {
    fn from(error: Elapsed) -> Self {
        Fault::from(error).into()
    }
}

impl From<Unreadable> for Error {
    fn from(error: Unreadable) -> Self {
        Fault::from(error).into()
    }
}
