//! A license as a pool of the engine.

use seatkeeper_core::{Policy, PoolId, PoolKind, Span, Terms, WhenFull, WhenHeld};
use seatkeeper_ledger::{License, LicenseId};

use crate::settings::LicensesSettings;

/// The license of a pool, if it is one.
pub(crate) fn license_id_of(pool: &PoolId) -> Option<LicenseId> {
    match pool.kind {
        PoolKind::License => pool.name.parse().ok(),
        PoolKind::Subscriber | PoolKind::Capacity => None,
    }
}

/// What a license grants where it says nothing else.
pub(crate) fn terms_of(license: &License, defaults: &LicensesSettings) -> Terms {
    license.terms(Span::from_secs(defaults.ttl_seconds))
}

/// How claims on licenses are decided: the newcomer is denied, the holder resumes.
pub(super) fn policy_of(license: &License, defaults: &LicensesSettings) -> Policy {
    Policy {
        terms: Some(terms_of(license, defaults)),
        ttl_default: Span::from_secs(defaults.ttl_seconds),
        when_full: WhenFull::Deny,
        when_held: WhenHeld::Resume,
    }
}

/// How often a client should heartbeat: three times a TTL, in whole seconds.
pub(super) fn heartbeat_interval_seconds(ttl: Span) -> u64 {
    (ttl.as_secs_floor() / 3).max(1)
}
