//! The audit log: what a record holds, how it is appended, and how it is read.

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
