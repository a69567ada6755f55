//! Plans: the device limit, policy and price offered to a tenant's subscribers.
//!
//! Each change of a plan takes the tenant's next version number, and appends a record to the plan's stream in
//! the same transaction. Plans are never deleted.

mod change;
mod create;
mod group_rules;
mod name;
mod plan;
mod read;
mod state;
mod update;
mod write;

pub use change::PlanChange;
pub use create::NewPlan;
pub use group_rules::{GroupRules, GroupScope};
pub use name::{NotAPlanName, PlanName};
pub(crate) use plan::BUILT_IN;
pub use plan::{Plan, PlanStatus};
pub(crate) use read::in_transaction;
