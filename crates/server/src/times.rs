//! Conversions between the registry's time, dates in the ledger and texts in answers.

use chrono::{DateTime, SecondsFormat, Utc};
use seatkeeper_core::RegistryTime;

/// Returns the date of a reading of the registry's clock.
pub(crate) fn date_of(time: RegistryTime) -> DateTime<Utc> {
    let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    DateTime::from_timestamp_millis(millis).unwrap_or(DateTime::<Utc>::MAX_UTC)
}

/// Returns the reading of the registry's clock for a date; 0 for dates before 1970.
pub(crate) fn registry_time_of(date: DateTime<Utc>) -> RegistryTime {
    RegistryTime::from_millis(u64::try_from(date.timestamp_millis()).unwrap_or(0))
}

/// Returns a date in RFC 3339, in UTC with `Z`, with milliseconds.
pub(crate) fn text_of_date(date: DateTime<Utc>) -> String {
    date.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Returns a time in RFC 3339, in UTC with `Z`, with milliseconds.
pub(crate) fn text_of(time: RegistryTime) -> String {
    text_of_date(date_of(time))
}
