//! How a license behaves as a pool of the engine.

use seatkeeper_core::{Policy, Span, WhenFull, WhenHeld, WhenNamed};
use seatkeeper_ledger::licenses::License;

use crate::entitlements::terms_of;
use crate::settings::LicensesSettings;

/// How claims on a license are decided: the newcomer is denied, the holder resumes.
pub(super) fn policy_of(license: &License, defaults: &LicensesSettings) -> Policy {
    Policy {
        terms: Some(terms_of(license, defaults)),
        ttl_default: Span::from_secs(defaults.ttl_seconds),
        when_named: WhenNamed::SameHolder,
        when_full: WhenFull::Deny,
        when_held: WhenHeld::Resume,
    }
}
