//! Errors that prevent a measurement. A missed target is no error.

use std::error::Error as _;
use std::io;

/// The reason that a measurement failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the runtime cannot start")]
    Runtime(#[source] io::Error),
    #[error("cannot {doing}")]
    System {
        doing: &'static str,
        #[source]
        source: io::Error,
    },
    #[error("a child process did not say `{wanted}`")]
    Silent { wanted: &'static str },
    #[error("a child process said `{said}`, which is not what was asked for")]
    Unclear { said: String },
    #[error("the load cannot run")]
    Load(#[from] seatkeeper_load::Error),
    #[error("a run is worth nothing: {why}")]
    Worthless { why: String },
    #[error("the admin API cannot be used")]
    Admin(#[from] reqwest::Error),
    #[error("a database cannot be used")]
    Database(#[from] sqlx::Error),
    #[error("Redis cannot be used")]
    Redis(#[from] redis::RedisError),
    #[error("the ledger cannot be used")]
    Ledger(#[from] seatkeeper_ledger::Error),
    #[error("the registry has no answer")]
    Registry(#[from] seatkeeper_registry::Error),
    #[error("the figures cannot be printed")]
    Json(#[from] serde_json::Error),
}

impl Error {
    /// Wraps an I/O error, for `map_err`.
    pub(crate) fn system(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { doing, source }
    }

    pub(crate) fn with_causes(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        text
    }
}
