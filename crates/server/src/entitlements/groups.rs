//! Terms of groups. A group has no entitlement on record: the settings alone determine its terms.

use seatkeeper_core::{Seats, Span, Standing, Terms};

use crate::settings::DevicesSettings;

/// Returns the terms of a new group. The version is the limit itself, so `audit verify` proves the limit from the
/// records, and a smaller setting shrinks no live group.
pub(crate) fn group_terms(settings: &DevicesSettings) -> Terms {
    Terms {
        version: u64::from(settings.group_members_max),
        limit: Seats(settings.group_members_max),
        ttl: Span::from_secs(settings.ttl_seconds),
        ends_at: None,
        standing: Standing::Open,
    }
}
