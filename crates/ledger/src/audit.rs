//! The audit log: entries to append, records to read.
//!
//! Records are immutable, and each stream numbers its records from 1 without a gap. A new [`Action`] also
//! needs its check in `verify/`.

mod append;
mod change;
mod entry;
mod list;
mod record;

pub(crate) use append::{append, head};
pub(crate) use change::{EntitlementChange, next_seq};
pub(crate) use entry::Entry;
pub use list::AuditFilter;
pub use record::{Action, AuditRecord, Stream};
