//! JSON forms of usage windows, batches and reconciliations.

use seatkeeper_ledger::usage::{Recorded, UsageBatch, UsageBooks, UsageWindow, WindowBooks};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::times::text_of;
use crate::usage::Amount;

/// Recorded usage. A unit is 30 days of tier 1.
#[derive(Serialize, ToSchema)]
pub(crate) struct RecordedAnswer {
    /// Total usage on record.
    recorded: Amount,
    /// Part of the usage that the sink has accepted.
    delivered: Amount,
    /// Part of the usage on its way to the sink.
    pending: Amount,
    /// Part of the usage that the sink refused; see the batches in state `dead`.
    dead: Amount,
}

/// A window with metered sessions of the tenant.
#[derive(Serialize, ToSchema)]
pub(crate) struct WindowAnswer {
    window_start: String,
    /// End of the window, and start of the next window.
    window_end: String,
    /// Number of metered sessions.
    records: u64,
    #[serde(flatten)]
    recorded: RecordedAnswer,
}

/// A batch of records sent to the sink together.
#[derive(Serialize, ToSchema)]
pub(crate) struct BatchAnswer {
    /// Id of the batch, sent to the sink as the `Idempotency-Key`.
    batch_id: Uuid,
    window_start: String,
    window_end: String,
    /// Position among the tenant's batches of the window.
    number: u64,
    records: u64,
    /// Sum of the records' usage.
    usage: Amount,
    /// `pending`, `delivered` or `dead`.
    state: &'static str,
    /// Number of attempts since the batch was created or sent again.
    attempts: u64,
    /// Time of the next attempt, for a pending batch.
    next_attempt_at: Option<String>,
    /// Status of the sink's last response.
    last_status: Option<u16>,
    last_error: Option<String>,
    delivered_at: Option<String>,
}

/// Dead batches that are sent again.
#[derive(Serialize, ToSchema)]
pub(crate) struct SentAnswer {
    /// Number of batches on their way to the sink.
    pub(super) sent: u64,
}

/// A comparison of held, recorded and delivered usage.
#[derive(Serialize, ToSchema)]
pub(crate) struct ReconciliationAnswer {
    /// Start of the first window within the span; absent if the span contains no window.
    from: Option<String>,
    /// End of the last window within the span.
    to: Option<String>,
    windows: u64,
    /// Usage of the tenant's sessions in the windows, computed anew from the sessions' history.
    held: Amount,
    #[serde(flatten)]
    recorded: RecordedAnswer,
    /// `true` if the held usage of every window is recorded and delivered in full.
    agrees: bool,
    /// First window, or gap between windows, with a difference.
    first_difference: Option<DifferenceAnswer>,
}

/// A window, or gap between windows, with a difference.
#[derive(Serialize, ToSchema)]
pub(crate) struct DifferenceAnswer {
    window_start: String,
    window_end: String,
    held: Amount,
    #[serde(flatten)]
    recorded: RecordedAnswer,
}

impl RecordedAnswer {
    fn from_recorded(recorded: Recorded) -> Self {
        Self {
            recorded: Amount(recorded.usage()),
            delivered: Amount(recorded.delivered),
            pending: Amount(recorded.pending),
            dead: Amount(recorded.dead),
        }
    }
}

impl WindowAnswer {
    pub(super) fn from_window(window: &UsageWindow) -> Self {
        Self {
            window_start: text_of(window.window.starts()),
            window_end: text_of(window.window.ends()),
            records: window.records,
            recorded: RecordedAnswer::from_recorded(window.recorded),
        }
    }
}

impl BatchAnswer {
    pub(super) fn from_batch(batch: UsageBatch) -> Self {
        let is_pending = batch.state == seatkeeper_ledger::usage::BatchState::Pending;
        Self {
            batch_id: batch.id,
            window_start: text_of(batch.window.starts()),
            window_end: text_of(batch.window.ends()),
            number: batch.number,
            records: batch.records,
            usage: Amount(batch.usage),
            state: batch.state.as_str(),
            attempts: batch.attempts,
            next_attempt_at: is_pending.then(|| text_of(batch.next_attempt)),
            last_status: batch.last_status,
            last_error: batch.last_error,
            delivered_at: batch.delivered.map(text_of),
        }
    }
}

impl ReconciliationAnswer {
    pub(super) fn from_books(books: &UsageBooks) -> Self {
        Self {
            from: books.span.map(|span| text_of(span.starts())),
            to: books.span.map(|span| text_of(span.ends())),
            windows: books.windows,
            held: Amount(books.held),
            recorded: RecordedAnswer::from_recorded(books.recorded),
            agrees: books.first_difference.is_none(),
            first_difference: books.first_difference.as_ref().map(DifferenceAnswer::from_books),
        }
    }
}

impl DifferenceAnswer {
    fn from_books(books: &WindowBooks) -> Self {
        Self {
            window_start: text_of(books.window.starts()),
            window_end: text_of(books.window.ends()),
            held: Amount(books.held),
            recorded: RecordedAnswer::from_recorded(books.recorded),
        }
    }
}
