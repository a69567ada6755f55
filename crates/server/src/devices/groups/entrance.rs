//! The checks before a device joins a group.

use seatkeeper_core::{SessionId, UserId};
use seatkeeper_ledger::plans::GroupScope;

use super::content;
use super::group_plan::{GroupPlan, groups_off};
use super::members::{code_refused, host, live_members};
use super::screen::live_owner;
use crate::app::App;
use crate::auth::Caller;
use crate::error::Error;
use crate::limits::{GROUP_JOINS_PER_HOUR, StandingNote};
use crate::problem::{self, Problem};

/// The answer of the entrance.
pub(super) enum Entrance {
    Open(GroupPlan),
    Closed(Problem),
}

/// Counts a join, and checks whether a device of the caller may join the group: the screen and a host live, the plan has
/// groups, the caller is within their scope, and the content fits.
pub(super) async fn enter(
    app: &App,
    who: &Caller,
    group: SessionId,
    content: Option<&str>,
    note: &StandingNote,
) -> Result<Entrance, Error> {
    match app.limits.group_join(group, note).await {
        Ok(()) => {}
        Err(Error::TooOften { wait_seconds }) => return Ok(Entrance::Closed(joined_too_often(wait_seconds))),
        Err(error) => return Err(error),
    }
    let Some(owner) = live_owner(app, &who.tenant, group).await? else {
        return Ok(Entrance::Closed(code_refused()));
    };
    let Some(plan) = GroupPlan::find(app, &who.tenant, &owner).await? else {
        return Ok(Entrance::Closed(groups_off()));
    };
    if !within_scope(plan.rules.scope, &who.user, &owner) {
        return Ok(Entrance::Closed(code_refused()));
    }
    let members = live_members(app, &who.tenant, group).await?;
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
    let detail = format!("A group takes {GROUP_JOINS_PER_HOUR} joins an hour.");
    Problem::new(&problem::GROUP_JOINED_TOO_OFTEN, detail).retry_after(wait_seconds)
}
