//! The limits granted by a pool's entitlement, according to its records.

use seatkeeper_core::{GROUP_MEMBERS_MAX, PoolKind, RegistryTime};

use super::{Breach, PlanHistory};
use crate::audit::{Action, AuditRecord};
use crate::copies;
use crate::subscriptions::SubscriptionStatus;
use crate::subscriptions::{Granted, NamedVersion, Phase};

/// The limit without known terms, without an active subscription, and of a capacity.
const LIMIT_LEAST: u32 = 1;

/// The grants of one pool, by kind of pool.
#[derive(Debug)]
pub(super) enum Grants<'p> {
    /// The versions of the license with their limits, and the first versions in each copy of the ledger.
    License { limits: Vec<(u64, u32)>, floors: &'p [u64] },
    /// The states of the user's subscriptions with their versions.
    Subscriber { plans: &'p PlanHistory, states: Vec<(u64, Granted)> },
    /// A capacity: the limit is always 1.
    Capacity,
    /// A group: the version of the terms is the limit, from 1 to [`GROUP_MEMBERS_MAX`].
    Group,
}

impl<'p> Grants<'p> {
    pub(super) fn new(kind: PoolKind, plans: &'p PlanHistory) -> Self {
        match kind {
            PoolKind::License => Self::License { limits: Vec::new(), floors: &[] },
            PoolKind::Subscriber => Self::Subscriber { plans, states: Vec::new() },
            PoolKind::Capacity => Self::Capacity,
            PoolKind::Group => Self::Group,
        }
    }

    /// Lets the versions of a license go on at `floors`, the first versions in each copy of the ledger.
    pub(super) fn with_version_floors(self, floors: &'p [u64]) -> Self {
        match self {
            Self::License { limits, .. } => Self::License { limits, floors },
            Self::Subscriber { .. } | Self::Capacity | Self::Group => self,
        }
    }

    /// Replays the next record of the entitlement stream.
    pub(super) fn record(&mut self, record: &AuditRecord) -> Result<(), Breach> {
        match self {
            Self::License { limits, floors } => license(limits, floors, record),
            Self::Subscriber { plans, states } => subscription(plans, states, record),
            Self::Capacity | Self::Group => Err(Breach::Malformed),
        }
    }

    /// Returns `true` if a later admission never has older terms. A group that is restored takes the limit of the plan at
    /// that moment, which may be smaller than before.
    pub(super) fn are_ordered(&self) -> bool {
        !matches!(self, Self::Group)
    }

    /// Returns the limit granted by terms of a version; `None` if no terms have the version. Terms not in
    /// force at `at` are a breach.
    pub(super) fn limit(&self, version: u64, at: RegistryTime) -> Result<Option<u32>, Breach> {
        self.limit_within(version, Some(at))
    }

    /// Returns the limit granted by terms of a version as [`Self::limit`] does, whether in force or not: the clocks of regions
    /// differ.
    pub(super) fn limit_of_version(&self, version: u64) -> Option<u32> {
        self.limit_within(version, None).unwrap_or(None)
    }

    /// Returns the version of the change of the entitlement behind terms of a version; `None` if no change of an entitlement
    /// can have granted the terms.
    pub(super) fn change_of(&self, version: u64) -> Option<u64> {
        match self {
            Self::License { .. } => Some(version),
            Self::Subscriber { .. } => NamedVersion::from_number(version).map(|named| named.change),
            Self::Capacity | Self::Group => None,
        }
    }

    fn limit_within(&self, version: u64, at: Option<RegistryTime>) -> Result<Option<u32>, Breach> {
        if version == 0 {
            return Ok(Some(LIMIT_LEAST));
        }
        match self {
            Self::License { limits, .. } => {
                let found = limits.binary_search_by_key(&version, |(version, _)| *version);
                Ok(found.ok().map(|found| limits[found].1))
            }
            Self::Subscriber { plans, states } => subscriber_limit(plans, states, version, at),
            Self::Capacity => Ok(Some(LIMIT_LEAST)),
            Self::Group => Ok(u32::try_from(version).ok().filter(|&limit| limit <= GROUP_MEMBERS_MAX)),
        }
    }
}

fn license(limits: &mut Vec<(u64, u32)>, floors: &[u64], record: &AuditRecord) -> Result<(), Breach> {
    let expected = limits.len() as u64 + 1;
    if record.seq != expected {
        return Err(Breach::Gap { expected });
    }
    let newest = limits.last().map_or(0, |(version, _)| *version);
    if !copies::is_next(record.version, newest, floors) {
        return Err(Breach::VersionSkips { version: record.version, newest });
    }
    let action = if expected == 1 { Action::LicenseCreated } else { Action::LicenseUpdated };
    if record.action != action {
        return Err(Breach::Malformed);
    }
    limits.push((record.version, record.limit));
    Ok(())
}

fn subscription(
    plans: &PlanHistory,
    states: &mut Vec<(u64, Granted)>,
    record: &AuditRecord,
) -> Result<(), Breach> {
    let expected = states.len() as u64 + 1;
    if record.seq != expected {
        return Err(Breach::Gap { expected });
    }
    // A user has at most one active subscription, and a subscription that is over stays over. So a record
    // after an active state is an update; any other record creates a subscription.
    let goes_on = states.last().is_some_and(|(_, state)| state.status == SubscriptionStatus::Active);
    let action = if goes_on { Action::SubscriptionUpdated } else { Action::SubscriptionCreated };
    let state = record.detail.as_deref().and_then(Granted::from_detail);
    let state = state.filter(|_| record.action == action).ok_or(Breach::Malformed)?;
    let newest = states.last().map_or(0, |(version, _)| *version);
    if record.version <= newest {
        return Err(Breach::VersionRanBack { version: record.version, newest });
    }
    let (limit, version) = (record.limit, record.version);
    let granted = match state.phase(record.at) {
        Phase::Active => plans.at(state.plan.as_str(), version).map(|plan| plan.limit),
        Phase::Ahead | Phase::Over => Some(LIMIT_LEAST),
    };
    states.push((version, state));
    if granted == Some(limit) { Ok(()) } else { Err(Breach::LimitNotGranted { limit, version, granted }) }
}

fn subscriber_limit(
    plans: &PlanHistory,
    states: &[(u64, Granted)],
    version: u64,
    at: Option<RegistryTime>,
) -> Result<Option<u32>, Breach> {
    let Some(NamedVersion { change, phase }) = NamedVersion::from_number(version) else {
        return Ok(None);
    };
    let upto = states.partition_point(|(version, _)| *version <= change);
    let Some((stated, state)) = upto.checked_sub(1).and_then(|last| states.get(last)) else {
        return Ok((change == 0 && phase == Phase::Over).then_some(LIMIT_LEAST));
    };
    let plan = plans.at(state.plan.as_str(), change);
    let Some(plan) = plan.filter(|plan| change == plan.version.max(*stated)) else {
        return Ok(None);
    };
    let in_force = at.is_none_or(|at| match phase {
        // The claim may have used terms from just before the start of the subscription, or the last known
        // terms.
        Phase::Ahead => state.status == SubscriptionStatus::Active,
        Phase::Active | Phase::Over => phase == state.phase(at),
    });
    match phase {
        _ if !in_force => Err(Breach::NotInForce { version }),
        Phase::Active => Ok(Some(plan.limit)),
        Phase::Ahead | Phase::Over => Ok(Some(LIMIT_LEAST)),
    }
}
