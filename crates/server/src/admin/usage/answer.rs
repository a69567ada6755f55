use seatkeeper_ledger::usage::{Recorded, UsageBatch, UsageBooks, UsageWindow, WindowBooks};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::times::text_of;
use crate::usage::Amount;

/// What is on record, in units: 30 days of tier 1.
#[derive(Serialize, ToSchema)]
pub(crate) struct RecordedAnswer {
    /// All that is on record.
    recorded: Amount,
    /// What of it the sink has,
    delivered: Amount,
    /// what is on its way,
    pending: Amount,
    /// and what the sink refused; see the batches in state `dead`.
    dead: Amount,
}

/// A window in which sessions of the tenant were metered.
#[derive(Serialize, ToSchema)]
pub(crate) struct WindowAnswer {
    window_start: String,
    /// The start of the next window.
    window_end: String,
    /// How many sessions were metered.
    records: u64,
    #[serde(flatten)]
    recorded: RecordedAnswer,
}

/// Records that go to the sink together.
#[derive(Serialize, ToSchema)]
pub(crate) struct BatchAnswer {
    /// What the sink is sent as the `Idempotency-Key`.
    batch_id: Uuid,
    window_start: String,
    window_end: String,
    /// Its place among the tenant's batches of the window.
    number: u64,
    records: u64,
    /// What the records sum to.
    usage: Amount,
    /// `pending`, `delivered` or `dead`.
    state: &'static str,
    /// How often it was tried since it was made or sent again.
    attempts: u64,
    /// Of a pending batch.
    next_attempt_at: Option<String>,
    /// What the sink answered last.
    last_status: Option<u16>,
    last_error: Option<String>,
    delivered_at: Option<String>,
}

/// What was held, recorded and delivered.
#[derive(Serialize, ToSchema)]
pub(crate) struct ReconciliationAnswer {
    /// Where the first window starts that lies in the span; absent if none does.
    from: Option<String>,
    /// Where the last one ends.
    to: Option<String>,
    windows: u64,
    /// What the tenant's sessions used in these windows, computed anew from their history.
    held: Amount,
    #[serde(flatten)]
    recorded: RecordedAnswer,
    /// Whether in each window all that was held is recorded and delivered.
    agrees: bool,
    /// The first window, or gap between windows, for which that is not so.
    first_difference: Option<DifferenceAnswer>,
}

/// One window in the books.
#[derive(Serialize, ToSchema)]
pub(crate) struct DifferenceAnswer {
    window_start: String,
    window_end: String,
    held: Amount,
    #[serde(flatten)]
    recorded: RecordedAnswer,
}

impl RecordedAnswer {
    fn of(recorded: Recorded) -> Self {
        Self {
            recorded: Amount(recorded.usage()),
            delivered: Amount(recorded.delivered),
            pending: Amount(recorded.pending),
            dead: Amount(recorded.dead),
        }
    }
}

impl WindowAnswer {
    pub(super) fn of(window: &UsageWindow) -> Self {
        Self {
            window_start: text_of(window.window.starts()),
            window_end: text_of(window.window.ends()),
            records: window.records,
            recorded: RecordedAnswer::of(window.recorded),
        }
    }
}

impl BatchAnswer {
    pub(super) fn of(batch: UsageBatch) -> Self {
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
    pub(super) fn of(books: &UsageBooks) -> Self {
        Self {
            from: books.span.map(|span| text_of(span.starts())),
            to: books.span.map(|span| text_of(span.ends())),
            windows: books.windows,
            held: Amount(books.held),
            recorded: RecordedAnswer::of(books.recorded),
            agrees: books.first_difference.is_none(),
            first_difference: books.first_difference.as_ref().map(DifferenceAnswer::of),
        }
    }
}

impl DifferenceAnswer {
    fn of(books: &WindowBooks) -> Self {
        Self {
            window_start: text_of(books.window.starts()),
            window_end: text_of(books.window.ends()),
            held: Amount(books.held),
            recorded: RecordedAnswer::of(books.recorded),
        }
    }
}
