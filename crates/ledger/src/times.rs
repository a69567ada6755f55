//! Conversions between registry times and stored times.

use chrono::{DateTime, Utc};
use seatkeeper_core::{RegistryTime, Span};

/// The last millisecond of the year 9999: later times would not sort as text.
const STORED_MILLIS_MAX: u64 = 253_402_300_799_999;

/// Returns the stored form of a time, in milliseconds. Times after the year 9999 become the year's last
/// millisecond.
pub(crate) fn stored(time: RegistryTime) -> DateTime<Utc> {
    let millis = time.as_millis().min(STORED_MILLIS_MAX);
    DateTime::from_timestamp_millis(millis as i64).unwrap_or_default()
}

/// Returns the stored time `span` after a stored time.
pub(crate) fn later(time: DateTime<Utc>, span: Span) -> DateTime<Utc> {
    stored(from_stored(time) + span)
}

/// Returns the registry time of a stored time. Times before 1970 become 1970.
pub(crate) fn from_stored(time: DateTime<Utc>) -> RegistryTime {
    RegistryTime::from_millis(u64::try_from(time.timestamp_millis()).unwrap_or_default())
}
