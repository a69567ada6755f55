//! Where usage goes.

mod body;
mod http;

use std::time::Duration;

use async_trait::async_trait;
use seatkeeper_ledger::usage::DueBatch;

pub(crate) use http::HttpSink;
pub use http::SinkError;

/// Takes batches of usage records.
#[async_trait]
pub(crate) trait Sink: Send + Sync + 'static {
    /// Sends a batch once, under its id as the `Idempotency-Key`.
    async fn send(&self, batch: &DueBatch) -> Reply;
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// An answer.
    Answered {
        status: u16,
        /// How long the sink wants to be left alone.
        retry_after: Option<Duration>,
        /// The beginning of what it said.
        said: String,
    },
    /// No answer, or none in time: the sink may have the batch or not.
    Unanswered { why: String },
}
