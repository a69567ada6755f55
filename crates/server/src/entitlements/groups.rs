//! Terms of groups. A group has no entitlement of its own: the plan of the subscriber who pays the screen determines its
//! terms.

use seatkeeper_core::{PoolId, RegistryTime, Seats, SessionId, Span, Standing, Terms, UserId};
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::subscriptions::Entitled;

/// Returns the terms of a new group on a screen of a plan; `None` for a plan without groups. The version is the limit
/// itself, so `audit verify` proves the limit from the records, and a smaller limit shrinks no live group before the group
/// is restored from the record.
pub(crate) fn group_terms(owner: &Entitled) -> Option<Terms> {
    let members_max = owner.groups.members_max;
    (members_max > 0).then(|| Terms {
        version: u64::from(members_max),
        limit: Seats(members_max),
        ttl: owner.terms.ttl,
        ends_at: None,
        standing: Standing::Open,
    })
}

/// Reads the terms of a group from the ledger, by the record of its screen. Without a record, or if the plan has no groups
/// any more, the group keeps its last known terms.
pub(super) async fn recorded_terms(
    ledger: &Ledger,
    group: &PoolId,
    now: RegistryTime,
    ttl_default: Span,
) -> Result<Option<Terms>, seatkeeper_ledger::Error> {
    let Ok(screen) = group.name.parse::<SessionId>() else { return Ok(None) };
    let Some(screen) = ledger.session(screen).await? else { return Ok(None) };
    let owner = UserId::new(&*screen.pool.name);
    let subscriber = ledger.subscriber(&group.tenant, &owner).await?;
    Ok(group_terms(&subscriber.entitled(now, ttl_default)))
}
