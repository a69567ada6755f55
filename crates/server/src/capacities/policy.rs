//! How a capacity behaves as a pool of the engine.

use seatkeeper_core::{Policy, Seats, Span, Standing, Terms, WhenFull, WhenHeld, WhenNamed};

use crate::settings::CapacitiesSettings;

/// What every capacity is granted: one session. Nothing changes that, so it has one version.
pub(crate) fn terms(settings: &CapacitiesSettings) -> Terms {
    Terms {
        version: 1,
        limit: Seats(1),
        ttl: Span::from_secs(settings.ttl_seconds),
        ends_at: None,
        standing: Standing::Open,
    }
}

/// How claims on a capacity are decided: a higher tier replaces a lower one.
pub(super) fn policy(settings: &CapacitiesSettings) -> Policy {
    let terms = terms(settings);
    Policy {
        terms: Some(terms),
        ttl_default: terms.ttl,
        when_named: WhenNamed::SameHolder,
        when_full: WhenFull::Deny,
        when_held: WhenHeld::Upgrade,
    }
}
