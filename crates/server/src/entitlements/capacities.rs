//! What gives capacities their limit: nothing but the kind of pool that they are.

use seatkeeper_core::{Seats, Span, Standing, Terms};

use crate::settings::CapacitiesSettings;

/// What every capacity is granted: one session. Nothing changes that, so it has one version.
pub(crate) fn capacity_terms(settings: &CapacitiesSettings) -> Terms {
    Terms {
        version: 1,
        limit: Seats(1),
        ttl: Span::from_secs(settings.ttl_seconds),
        ends_at: None,
        standing: Standing::Open,
    }
}
