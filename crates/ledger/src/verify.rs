//! The proof, from the log alone, that no pool was ever above its limit and that every session ended
//! once.
//!
//! [`Replay`] is pure: it is fed with one pool's records and knows nothing of where they come from.
//! To demand more of the log, add a [`Breach`] and the place in `replay.rs` that finds it.

mod alone;
mod finding;
mod fold;
mod grants;
mod plans;
mod read;
mod replay;

pub use finding::{Breach, Finding, Place};
pub use plans::PlanHistory;
pub use read::Verdict;
pub use replay::{Cut, Proof, Replay};
