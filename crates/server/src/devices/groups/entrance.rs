//! The checks before a device joins a group.

use seatkeeper_core::{Holder, SessionId, UserId};
use seatkeeper_ledger::plans::GroupScope;

use super::content;
use super::group_plan::{GroupPlan, groups_off};
use super::members::{code_refused, host, live_members};
use super::screen::live_owner;
use crate::app::App;
use crate::auth::Caller;
use crate::error::Error;
use crate::limits::{GROUP_JOINS_PER_HOUR, GUEST_JOINS_PER_HOUR, StandingNote};
use crate::problem::{self, Problem};

/// The answer of the entrance.
pub(super) enum Entrance {
    Open(GroupPlan),
    Closed(Problem),
}

/// A device at the entrance of a group.
pub(super) struct Newcomer<'a> {
    pub(super) who: &'a Caller,
    pub(super) group: SessionId,
    pub(super) device: &'a Holder,
    pub(super) content: Option<&'a str>,
    pub(super) note: &'a StandingNote,
}

/// Checks whether a device of the caller may join the group, and counts the join: the screen and a host live, the plan has
/// groups, the caller is within their scope, and the content fits. The join of a device that is a member is not counted.
pub(super) async fn enter(app: &App, newcomer: Newcomer<'_>) -> Result<Entrance, Error> {
    let Newcomer { who, group, device, content, note } = newcomer;
    let Some(owner) = live_owner(app, &who.tenant, group).await? else {
        return Ok(Entrance::Closed(code_refused()));
    };
    let members = live_members(app, &who.tenant, group).await?;
    if !members.iter().any(|live| live.session.holder == *device) {
        let guest = (who.user != owner).then_some(who);
        match app.limits.group_join(group, guest, note).await {
            Ok(()) => {}
            Err(Error::TooOften { wait_seconds }) => {
                return Ok(Entrance::Closed(joined_too_often(wait_seconds)));
            }
            Err(error) => return Err(error),
        }
    }
    let Some(plan) = GroupPlan::find(app, &who.tenant, &owner).await? else {
        return Ok(Entrance::Closed(groups_off()));
    };
    if !within_scope(plan.rules.scope, &who.user, &owner) {
        return Ok(Entrance::Closed(code_refused()));
    }
    let Some(host) = host(&members) else { return Ok(Entrance::Closed(code_refused())) };
    if !content::fits(app, &plan, host, content).await? {
        let detail = "Name the host's content as `content_id`.";
        return Ok(Entrance::Closed(Problem::new(&problem::GROUP_CONTENT, detail)));
    }
    Ok(Entrance::Open(plan))
}

/// Checks the present scope: a plan may have changed after the code was made.
fn within_scope(scope: GroupScope, user: &UserId, owner: &UserId) -> bool {
    match scope {
        GroupScope::SameUser => user == owner,
        GroupScope::AnyUser => true,
    }
}

fn joined_too_often(wait_seconds: u64) -> Problem {
    let detail =
        format!("A group takes {GROUP_JOINS_PER_HOUR} joins an hour, and {GUEST_JOINS_PER_HOUR} of one guest.");
    Problem::new(&problem::GROUP_JOINED_TOO_OFTEN, detail).retry_after(wait_seconds)
}
