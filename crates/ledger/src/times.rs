//! Registry times as the database stores them.

use chrono::{DateTime, Utc};
use seatkeeper_core::{RegistryTime, Span};

/// The last millisecond of the year 9999: later times would not sort as text.
const STORED_MILLIS_MAX: u64 = 253_402_300_799_999;

/// The stored form, in milliseconds; a time after the year 9999 becomes its end.
pub(crate) fn stored(time: RegistryTime) -> DateTime<Utc> {
    let millis = time.as_millis().min(STORED_MILLIS_MAX);
    DateTime::from_timestamp_millis(millis as i64).unwrap_or_default()
}

/// The stored form of the time so long after another.
pub(crate) fn later(time: DateTime<Utc>, span: Span) -> DateTime<Utc> {
    stored(from_stored(time) + span)
}

/// The time that a stored form tells; one before 1970 becomes its start.
pub(crate) fn from_stored(time: DateTime<Utc>) -> RegistryTime {
    RegistryTime::from_millis(u64::try_from(time.timestamp_millis()).unwrap_or_default())
}
