//! Proves from the audit log alone that no pool was ever above its limit, and that every session ended at
//! most once.
//!
//! [`Replay`] is pure: a replay takes the records of one pool and does no I/O. A new check of the log is a
//! [`Breach`] and the place in `replay.rs` that finds the breach.

mod finding;
mod fold;
mod grants;
mod lost_terms;
mod node_local;
mod plans;
mod read;
mod regions;
mod replay;
mod told_terms;

pub use finding::{Breach, BreachSite, Finding};
pub use lost_terms::LostTerms;
pub use plans::PlanHistory;
pub use read::Verdict;
pub use regions::{
    HomeMove, HomeMoveKind, HomeTrails, KnownDeployments, RegionBreach, RegionProof, Subscriber,
    check_deployments,
};
pub use replay::{Cut, Proof, Replay};
pub use told_terms::ToldTerms;
