//! Usage of capacities, recorded in windows and delivered in batches.
//!
//! Windows are contiguous. A session's usage in a window is computed from the session's history, so an
//! interrupted emission starts over and makes the same batches with the same ids. Batches are staged in short
//! transactions, because admissions wait behind each transaction. The window's own row, inserted last, makes
//! all its batches valid in one step. To meter another kind of pool, change `metered_sessions.sql`.

mod batches;
mod books;
mod copy;
mod deliver;
mod emit;
mod ids;
mod list;
mod metered;
mod purge;
mod record;
mod resend;
mod split;
mod tally;
mod unbilled;

pub use books::{UsageBooks, WINDOWS_RECONCILED_MAX, WindowBooks};
pub use deliver::{DELIVERY_BACKOFF_MAX, DueBatch, Settlement};
pub use emit::Emitted;
pub use list::{BatchPosition, BatchState, Recorded, UsageBatch, UsageWindow};
pub use record::UsageRecord;
pub use tally::TALLY_MAX;
pub use unbilled::UnbilledUsage;
