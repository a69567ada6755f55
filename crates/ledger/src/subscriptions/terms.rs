//! A subscriber's terms at an instant, computed from the user's newest subscription and its plan.
//!
//! Versions of terms rise, so older terms never replace newer terms. A version encodes the number of the last
//! change and the phase of the subscription, because a subscriber's terms change with changes and with time.

use seatkeeper_core::{RegistryTime, Seats, Span, Standing, Terms, WhenFull};

use super::SubscriptionStatus;
use crate::Error;
use crate::database::Row;
use crate::plans::{GroupRules, Plan, PlanName};
use crate::row::Fields;

/// The limit without an active subscription: the most restrictive limit.
const LIMIT_WITHOUT: Seats = Seats(1);

/// The phase of a subscription. Time leads from each phase to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Not started.
    Ahead,
    /// Active.
    Active,
    /// Past its end, cancelled, or missing.
    Over,
}

impl Phase {
    pub(super) fn at(
        status: SubscriptionStatus,
        starts_at: RegistryTime,
        ends_at: Option<RegistryTime>,
        now: RegistryTime,
    ) -> Self {
        match status {
            SubscriptionStatus::Cancelled | SubscriptionStatus::Expired => Self::Over,
            SubscriptionStatus::Active if ends_at.is_some_and(|ends_at| ends_at <= now) => Self::Over,
            SubscriptionStatus::Active if starts_at <= now => Self::Active,
            SubscriptionStatus::Active => Self::Ahead,
        }
    }
}

/// The parts of a version of a subscriber's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NamedVersion {
    /// The number of the newest change; 0 without a change.
    pub(crate) change: u64,
    pub(crate) phase: Phase,
}

impl NamedVersion {
    /// Version numbers for each change, with room for the phases between two changes.
    const PER_CHANGE: u64 = 4;

    /// Returns the version number. Never 0, because 0 stands for unknown terms.
    fn number(self) -> u64 {
        let phase = match self.phase {
            Phase::Ahead => 0,
            Phase::Active => 1,
            Phase::Over => 2,
        };
        self.change * Self::PER_CHANGE + phase + 1
    }

    /// Splits a version number into its parts; `None` for a number without terms.
    pub(crate) fn from_number(number: u64) -> Option<Self> {
        let at = number.checked_sub(1)?;
        let phase = match at % Self::PER_CHANGE {
            0 => Phase::Ahead,
            1 => Phase::Active,
            2 => Phase::Over,
            _ => return None,
        };
        Some(Self { change: at / Self::PER_CHANGE, phase })
    }
}

/// The newest subscription of a user and its plan, read in one snapshot: the sources of the user's limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subscriber(Option<Held>);

/// A user's newest subscription and its plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) status: SubscriptionStatus,
    pub(crate) starts_at: RegistryTime,
    pub(crate) ends_at: Option<RegistryTime>,
    /// The subscription's version.
    pub(crate) version: u64,
    pub(crate) plan: PlanName,
    pub(crate) device_limit: Seats,
    pub(crate) when_full: WhenFull,
    pub(crate) ttl_seconds: Option<u32>,
    pub(crate) groups: GroupRules,
    pub(crate) plan_version: u64,
}

/// The terms of a subscriber at an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entitled {
    /// The plan granting the terms; `None` without an active subscription.
    pub plan: Option<PlanName>,
    /// The limit, the TTL and the end.
    pub terms: Terms,
    /// The treatment of a device above the limit.
    pub when_full: WhenFull,
    /// The rules of groups that watch together. Without an active subscription there are no groups.
    pub groups: GroupRules,
    /// The time until the subscription starts or ends; `None` if time changes the terms no more.
    pub next_phase_in: Option<Span>,
}

impl Subscriber {
    pub(crate) fn new(held: Option<Held>) -> Self {
        Self(held)
    }

    /// Returns the subscriber of a subscription to `plan` that is not on record.
    pub fn with_plan(plan: &Plan, starts_at: RegistryTime, ends_at: Option<RegistryTime>) -> Self {
        Self(Some(Held::by_plan(plan, starts_at, ends_at)))
    }

    pub(crate) fn held(&self) -> Option<&Held> {
        self.0.as_ref()
    }

    /// Returns whether the subscription started or ended within `span` before `now`: an estimate of the time that may be
    /// `span` ahead does not tell the phase.
    pub fn has_changed_phase_within(&self, span: Span, now: RegistryTime) -> bool {
        self.0.as_ref().is_some_and(|held| held.phase(now) != held.phase(now - span))
    }

    /// Returns the subscriber's terms at `now`. The version of the terms never decreases with time or
    /// changes, is never 0, and never stands for two limits.
    ///
    /// The end of a subscription binds sessions from before the start as well. The start brings no terms to the pool, so
    /// the end of these sessions would otherwise depend on a claim after the start.
    pub fn entitled(&self, now: RegistryTime, ttl_default: Span) -> Entitled {
        let phase = self.0.as_ref().map_or(Phase::Over, |held| held.phase(now));
        let change = self.0.as_ref().map_or(0, |held| held.version.max(held.plan_version));
        let unfinished = self.0.as_ref().filter(|_| phase != Phase::Over);
        let without = Terms {
            version: NamedVersion { change, phase }.number(),
            limit: LIMIT_WITHOUT,
            ttl: ttl_default,
            ends_at: unfinished.and_then(|held| held.ends_at),
            standing: Standing::Open,
        };
        let next_phase_in = unfinished.and_then(|held| held.next_phase_in(now));
        match &self.0 {
            Some(held) if phase == Phase::Active => Entitled {
                plan: Some(held.plan.clone()),
                terms: Terms {
                    limit: held.device_limit,
                    ttl: held.ttl_seconds.map_or(ttl_default, |seconds| Span::from_secs(seconds.into())),
                    ..without
                },
                when_full: held.when_full,
                groups: held.groups,
                next_phase_in,
            },
            Some(_) | None => Entitled {
                plan: None,
                terms: without,
                when_full: WhenFull::Evict,
                groups: GroupRules::default(),
                next_phase_in,
            },
        }
    }
}

impl Held {
    /// Returns an active subscription to `plan`, of version 0.
    pub(super) fn by_plan(plan: &Plan, starts_at: RegistryTime, ends_at: Option<RegistryTime>) -> Self {
        Self {
            status: SubscriptionStatus::Active,
            starts_at,
            ends_at,
            version: 0,
            plan: plan.name.clone(),
            device_limit: plan.device_limit,
            when_full: plan.when_full,
            ttl_seconds: plan.ttl_seconds,
            groups: plan.groups,
            plan_version: plan.version,
        }
    }

    pub(crate) fn phase(&self, now: RegistryTime) -> Phase {
        Phase::at(self.status, self.starts_at, self.ends_at, now)
    }

    /// Returns the time until the next phase; `None` if the phase lasts.
    fn next_phase_in(&self, now: RegistryTime) -> Option<Span> {
        let next = match self.phase(now) {
            Phase::Ahead => Some(self.starts_at),
            Phase::Active => self.ends_at,
            Phase::Over => None,
        };
        next.map(|next| next.since(now))
    }

    pub(super) fn read(row: &Row) -> Result<Self, Error> {
        let fields = Fields(row);
        Ok(Self {
            status: fields.named("status")?,
            starts_at: fields.time("starts_at")?,
            ends_at: fields.time_maybe("ends_at")?,
            version: fields.whole("version")?,
            plan: fields.named("plan")?,
            device_limit: Seats(fields.small("device_limit")?),
            when_full: fields.named("when_full")?,
            ttl_seconds: fields.number_maybe("ttl_seconds")?,
            groups: GroupRules::read(&fields)?,
            plan_version: fields.whole("plan_version")?,
        })
    }
}

#[cfg(test)]
mod tests;
