//! Usage of capacities: put on record window by window, delivered batch by batch.
//!
//! Windows are contiguous, and what a session used in one is computed from its history, so that an emission
//! may break off anywhere and begin again: it makes the same batches with the same ids. Batches are staged
//! in short transactions, for admissions wait behind each of them; the window's own row, inserted last,
//! makes all of them count in one step. To meter another kind of pool, change `metered_sessions.sql`.

mod batches;
mod books;
mod deliver;
mod emit;
mod ids;
mod list;
mod metered;
mod purge;
mod record;
mod tally;

pub use books::{UsageBooks, WINDOWS_RECONCILED_MAX, WindowBooks};
pub use deliver::{DueBatch, Settlement};
pub use emit::Emitted;
pub use list::{BatchState, NotABatchState, Recorded, UsageBatch, UsageWindow};
pub use record::UsageRecord;
pub use tally::TALLY_MAX;
