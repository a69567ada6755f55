//! The checks before a device joins a group.

use seatkeeper_core::{EndReason, Holder, PoolKind, RegistryTime, SessionId, UserId};
use seatkeeper_ledger::plans::GroupScope;
use seatkeeper_ledger::sessions::{SessionEnd, SessionFilter};

use super::group_plan::{GroupPlan, groups_off};
use super::members::{code_refused, host, live_members};
use super::screen::live_owner;
use super::{content, members_of};
use crate::app::App;
use crate::auth::Caller;
use crate::error::Error;
use crate::limits::{GROUP_JOINS_PER_HOUR, GUEST_JOINS_PER_HOUR, StandingNote};
use crate::problem::{self, Problem};

/// The most memberships of a guest that are searched for a removal: the joins of a guest in two days.
const MEMBERSHIPS_MAX: u32 = 500;

/// The answer of the entrance.
pub(super) enum Entrance {
    /// The device may claim a place in the group.
    Open {
        plan: GroupPlan,
        /// Time at which the join code of a guest was made; `None` for a device of the subscriber.
        guest_invited: Option<RegistryTime>,
    },
    Closed(Problem),
}

/// A device at the entrance of a group.
pub(super) struct Newcomer<'a> {
    pub(super) who: &'a Caller,
    pub(super) group: SessionId,
    pub(super) device: &'a Holder,
    pub(super) content: Option<&'a str>,
    /// Time at which the newcomer's join code was made; `None` for a device that needs no code.
    pub(super) invited: Option<RegistryTime>,
    pub(super) note: &'a StandingNote,
}

/// Checks whether a device of the caller may join the group, and counts the join: the screen and a host live, the plan has
/// groups, the caller is within their scope, and the content fits. The join of a device that is a member is not counted.
pub(super) async fn enter(app: &App, newcomer: Newcomer<'_>) -> Result<Entrance, Error> {
    let Newcomer { who, group, device, content, invited, note } = newcomer;
    let Some(owner) = live_owner(app, &who.tenant, group).await? else {
        return Ok(Entrance::Closed(code_refused()));
    };
    let members = live_members(app, &who.tenant, group).await?;
    let guest = (who.user != owner).then_some(who);
    if !members.iter().any(|live| live.session.holder == *device) {
        match app.limits.group_join(group, guest, note).await {
            Ok(()) => {}
            Err(Error::TooOften { wait_seconds }) => {
                return Ok(Entrance::Closed(joined_too_often(wait_seconds)));
            }
            Err(error) => return Err(error),
        }
        if let (Some(guest), Some(invited)) = (guest, invited)
            && is_removed_within(app, guest, group, (invited, RegistryTime::MAX)).await?
        {
            return Ok(Entrance::Closed(code_refused()));
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
    Ok(Entrance::Open { plan, guest_invited: invited.filter(|_| guest.is_some()) })
}

/// Checks whether a membership of the guest was revoked after `invited`, and by `until` at the latest: a guest whom the
/// subscriber has removed needs a newer code. The removal is on record before its answer (`depart`).
pub(super) async fn is_removed_within(
    app: &App,
    guest: &Caller,
    group: SessionId,
    (invited, until): (RegistryTime, RegistryTime),
) -> Result<bool, Error> {
    let filter = SessionFilter {
        pool_kind: Some(PoolKind::Group),
        pool: Some(members_of(&guest.tenant, group).name),
        user: Some(guest.user.clone()),
        live: Some(false),
        ..SessionFilter::default()
    };
    let ended = app.ledger.search_sessions(&guest.tenant, &filter, None, MEMBERSHIPS_MAX).await;
    let ended = ended.map_err(Error::Ledger)?;
    let is_removal =
        |end: SessionEnd| end.reason == EndReason::Revoked && end.at > invited && end.at <= until;
    Ok(ended.items.iter().filter_map(|record| record.ended).any(is_removal))
}

/// Checks the present scope: a plan may have changed after the code was made.
fn within_scope(scope: GroupScope, user: &UserId, owner: &UserId) -> bool {
    match scope {
        GroupScope::SameUser => user == owner,
        GroupScope::AnyUser => true,
    }
}

fn joined_too_often(wait_seconds: u64) -> Problem {
    let detail = format!(
        "A group takes {GROUP_JOINS_PER_HOUR} joins an hour, and {GUEST_JOINS_PER_HOUR} of one guest."
    );
    Problem::new(&problem::GROUP_JOINED_TOO_OFTEN, detail).retry_after(wait_seconds)
}
