//! The audit log: what a record holds, how it is appended, and how it is read.

mod append;
mod change;
mod list;
mod record;

pub(crate) use append::{Entry, append, head};
pub(crate) use change::{EntitlementChange, next_seq};
pub use list::AuditFilter;
pub use record::{Action, AuditRecord, Stream};
