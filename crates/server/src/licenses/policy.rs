//! The policy of a license's pool.

use seatkeeper_core::{Policy, Span, WhenFull, WhenHeld, WhenNamed};
use seatkeeper_ledger::licenses::License;

use crate::entitlements::terms_of;
use crate::settings::LicensesSettings;

/// Returns the policy of a license: a full pool denies a new holder, and a holder resumes its session.
pub(super) fn policy_of(license: &License, defaults: &LicensesSettings) -> Policy {
    Policy {
        terms: Some(terms_of(license, defaults)),
        ttl_default: Span::from_secs(defaults.ttl_seconds),
        when_named: WhenNamed::SameHolder,
        when_full: WhenFull::Deny,
        when_held: WhenHeld::Resume,
    }
}
