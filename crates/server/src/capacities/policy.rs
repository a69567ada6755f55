//! How a capacity behaves as a pool of the engine.

use seatkeeper_core::{Policy, WhenFull, WhenHeld, WhenNamed};

use crate::entitlements::capacity_terms;
use crate::settings::CapacitiesSettings;

/// How claims on a capacity are decided: a higher tier replaces a lower one.
pub(super) fn policy(settings: &CapacitiesSettings) -> Policy {
    let terms = capacity_terms(settings);
    Policy {
        terms: Some(terms),
        ttl_default: terms.ttl,
        when_named: WhenNamed::SameHolder,
        when_full: WhenFull::Deny,
        when_held: WhenHeld::Upgrade,
    }
}
