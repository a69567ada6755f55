//! Between the registry's time, the ledger's dates and the texts of answers.

use chrono::{DateTime, SecondsFormat, Utc};
use seatkeeper_core::RegistryTime;

/// The date that a reading of the registry's clock stands for.
pub(crate) fn date_of(time: RegistryTime) -> DateTime<Utc> {
    let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    DateTime::from_timestamp_millis(millis).unwrap_or(DateTime::<Utc>::MAX_UTC)
}

/// The reading of the registry's clock that a date stands for; dates before 1970 are its zero.
pub(crate) fn registry_time_of(date: DateTime<Utc>) -> RegistryTime {
    RegistryTime::from_millis(u64::try_from(date.timestamp_millis()).unwrap_or(0))
}

/// RFC 3339 in UTC with `Z`, to the millisecond.
pub(crate) fn text_of_date(date: DateTime<Utc>) -> String {
    date.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// RFC 3339 in UTC with `Z`, to the millisecond.
pub(crate) fn text_of(time: RegistryTime) -> String {
    text_of_date(date_of(time))
}
