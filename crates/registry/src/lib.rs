//! The registry of live sessions: the [`Registry`] contract and its backends.
//!
//! A backend implements [`Registry`] and passes `conformance_suite!`. A backend decides by the rule of
//! `seatkeeper-core` and a single clock, and writes each change to its journal in the same atomic step.

mod clock;
mod clock_estimate;
mod clock_trust;
#[cfg(feature = "conformance")]
pub mod conformance;
mod contract;
mod entries;
mod epochs;
mod error;
pub mod memory;
mod open_pool;
pub mod postgres;
mod rebuild;
pub mod redis;
mod unreadable;

pub use clock::{ManualClock, MonotonicClock, TimeSource};
pub use clock_trust::{ClockSteps, Store};
pub use contract::{
    Admission, Answer, Claimed, ClosedAt, Ended, EndedAll, Expiry, Granted, Heartbeat, Journal, JournalEntry,
    JournalRead, Live, Liveness, PoolView, Pools, Receipt, Registry, Request, Sessions, Swept, TimeReading,
    UnreadableEntry,
};
pub use epochs::Epochs;
pub use error::Error;
pub use rebuild::{Condition, Filling, Identity, Rebuild, State};
