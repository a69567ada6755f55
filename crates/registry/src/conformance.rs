//! The conformance suite of all backends: the contract of [`Registry`](crate::Registry) as code.
//!
//! A clause is an async function over a [`Harness`], supplied by each backend. A backend's tests are the line
//! [`conformance_suite!`](crate::conformance_suite), which expands all clauses, and a call of [`model::run`].
//! A new clause is a function in one of these modules and a line in the macro's list.
//!
//! A clause sees only a backend's answers and journal, and passes time only by the harness. Sessions that
//! must outlast a clause have a TTL of an hour. Sessions that must end within a clause have [`Harness::ttl`],
//! so that a backend with a real clock can wait for the end.
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
pub mod groups;
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

pub use harness::{Clause, Harness, JOURNAL_EVENTS_MAX, Run, rounds};
