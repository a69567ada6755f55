//! Plans: what a tenant's subscribers may have.
//!
//! Each change of a plan takes the next number of its tenant's changes as its version, and has its
//! record in the plan's stream, in the same transaction. Plans are never deleted.

mod change;
mod create;
mod name;
mod plan;
mod read;
mod state;
mod update;
mod write;

pub use change::PlanChange;
pub use create::NewPlan;
pub use name::{NotAPlanName, PlanName};
pub(crate) use plan::BUILT_IN;
pub use plan::{Plan, PlanStatus};
pub(crate) use read::in_transaction;
