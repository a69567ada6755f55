//! The audit log: what a record holds, how it is appended, and how it is read.

mod append;
mod list;
mod record;

pub(crate) use append::{Entry, append, head};
pub use list::AuditFilter;
pub use record::{Action, AuditRecord, Stream};
