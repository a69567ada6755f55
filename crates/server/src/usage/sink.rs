//! The receiver of usage records.

mod body;
mod http;

use std::time::Duration;

use async_trait::async_trait;
use seatkeeper_ledger::usage::DueBatch;

pub(crate) use http::HttpSink;
pub use http::SinkError;

/// A receiver of usage batches.
#[async_trait]
pub(crate) trait Sink: Send + Sync + 'static {
    /// Sends a batch a single time, with the batch id as the `Idempotency-Key`.
    async fn send(&self, batch: &DueBatch) -> Reply;
}

/// The reply of a sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// An HTTP answer.
    Answered {
        status: u16,
        /// The pause requested by `Retry-After`.
        retry_after: Option<Duration>,
        /// The beginning of the body.
        said: String,
    },
    /// No answer, for example after a timeout.
    Unanswered {
        why: String,
        /// The request may have reached the sink, so the sink may have the batch.
        may_be_stored: bool,
    },
}
