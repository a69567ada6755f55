//! One suite of clauses for every backend: the contract of [`Registry`](crate::Registry) as code.
//!
//! A clause is one async function over a [`Harness`], which each backend supplies. A backend's tests
//! are one line, [`conformance_suite!`](crate::conformance_suite), which expands all clauses; and a
//! call of [`model::run`]. A new clause is a function in one of the modules here and a line in the
//! macro's list, and so reaches every backend at once.
//!
//! A clause knows nothing of a backend but its answers and its journal, and time passes only through the
//! harness. What must not be over in a clause has an hour to live; what must be has
//! [`Harness::ttl`], so that a backend with a real clock can wait it out.
#![allow(missing_docs, reason = "the name of a clause is its sentence")]
#![expect(clippy::panic, clippy::expect_used, reason = "a clause fails by panicking")]

pub mod admission;
mod asked;
pub mod books;
pub mod clock;
pub mod concurrency;
pub mod denials;
pub mod ends;
pub mod expiry;
mod harness;
pub mod journal;
pub mod membership;
pub mod model;
pub mod opening;
pub mod ownership;
mod plan;
mod pool;
pub mod reading;
pub mod rebuilding;
mod suite;
pub mod sweeping;
pub mod terms;

pub use harness::{Clause, Harness, JOURNAL_EVENTS_MAX, Run};
