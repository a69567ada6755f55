//! Admission policy of capacity pools.

use seatkeeper_core::{Policy, WhenFull, WhenHeld, WhenNamed};

use crate::entitlements::capacity_terms;
use crate::settings::CapacitiesSettings;

/// Returns the policy of a capacity: a claim for a higher tier replaces the holder's session of a lower tier.
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
