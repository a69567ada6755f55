//! The errors of the demo.

use seatkeeper_server::auth::MintError;

use super::child::ChildError;
use crate::api_client;

/// The reason why the story broke off.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DemoError {
    /// No directory for the demo's data can be made.
    #[error("cannot work with a directory for the demonstration's data")]
    Directory(#[source] std::io::Error),
    /// The demo's server failed.
    #[error(transparent)]
    Child(#[from] ChildError),
    /// No token can be signed.
    #[error("no token could be signed")]
    Mint(#[from] MintError),
    /// A call of the API failed.
    #[error(transparent)]
    Api(#[from] api_client::Error),
    /// The audit log cannot be read.
    #[error(transparent)]
    Ledger(#[from] seatkeeper_ledger::Error),
    /// The result cannot be printed.
    #[error("cannot write to the standard output")]
    Output(#[from] std::io::Error),
    /// The server contradicted the story.
    #[error("the story went wrong: {0}")]
    Unexpected(String),
}

pub(super) type StoryResult<T> = Result<T, DemoError>;
