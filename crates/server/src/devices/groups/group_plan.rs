//! The plan of a group: the plan of the subscriber who pays the group's screen.

use seatkeeper_core::{Policy, TenantId, Terms, UserId, WhenFull, WhenHeld, WhenNamed};
use seatkeeper_ledger::plans::GroupRules;

use crate::app::App;
use crate::devices::policy::entitled;
use crate::entitlements::group_terms;
use crate::error::Error;
use crate::problem::{self, Problem};

/// The plan of a group.
pub(super) struct GroupPlan {
    pub(super) rules: GroupRules,
    terms: Terms,
}

impl GroupPlan {
    /// Looks the plan up; `None` if the plan of `owner` allows no groups.
    pub(super) async fn find(app: &App, tenant: &TenantId, owner: &UserId) -> Result<Option<Self>, Error> {
        let entitled = entitled(app, tenant, owner).await?;
        Ok(group_terms(&entitled).map(|terms| Self { rules: entitled.groups, terms }))
    }

    /// Returns the policy of the members' pool: no member makes room for another, and a device that joins twice is one
    /// member.
    pub(super) fn policy(&self) -> Policy {
        Policy {
            terms: Some(self.terms),
            ttl_default: self.terms.ttl,
            when_named: WhenNamed::SameDevice,
            when_full: WhenFull::Deny,
            when_held: WhenHeld::Resume,
        }
    }
}

/// Returns the denial of a plan without groups.
pub(super) fn groups_off() -> Problem {
    Problem::new(&problem::GROUPS_OFF, "`group_members_max` of the plan is 0.")
}
