//! Validators and serde helpers for the fields of licenses, plans and subscriptions.

use std::fmt::Display;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use seatkeeper_core::{RegistryTime, WhenFull};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize as _, Serializer};

use crate::http::name_field;
use crate::settings::{TTL_SECONDS_MAX, TTL_SECONDS_MIN};
use crate::times::registry_time_of;

/// Highest number of seats of a license.
pub(super) const SEATS_MAX: u32 = 1_000_000;
/// Longest time that a client goes on without a session, in seconds: 7 days.
pub(super) const GRACE_SECONDS_MAX: u32 = 604_800;
/// Highest price of a plan, in cents.
pub(super) const PRICE_CENTS_MAX: u32 = 1_000_000_000;

/// Checks a TTL if present.
pub(super) fn ttl_field(ttl: &Option<u32>, _: &()) -> garde::Result {
    match ttl {
        Some(ttl) if !(TTL_SECONDS_MIN..=TTL_SECONDS_MAX).contains(&u64::from(*ttl)) => {
            let range = format!("must be {TTL_SECONDS_MIN} to {TTL_SECONDS_MAX} seconds");
            Err(garde::Error::new(range))
        }
        Some(_) | None => Ok(()),
    }
}

/// Checks the change of a TTL if present. `null` removes the TTL.
pub(super) fn ttl_change_field(ttl: &Option<Option<u32>>, context: &()) -> garde::Result {
    ttl_field(&ttl.flatten(), context)
}

/// Checks the change of a name if present. `null` removes the name.
pub(super) fn name_change_field(name: &Option<Option<String>>, context: &()) -> garde::Result {
    name.iter().flatten().try_for_each(|name| name_field(name, context))
}

/// Checks a date if present: between the years 1970 and 9999.
pub(super) fn date_field(date: &Option<DateTime<Utc>>, _: &()) -> garde::Result {
    const LATEST: i64 = 253_402_300_799;
    match date {
        Some(date) if !(0..=LATEST).contains(&date.timestamp()) => {
            Err(garde::Error::new("must be between the years 1970 and 9999"))
        }
        Some(_) | None => Ok(()),
    }
}

/// Checks the change of a date if present. `null` removes the date.
pub(super) fn date_change_field(date: &Option<Option<DateTime<Utc>>>, context: &()) -> garde::Result {
    date_field(&date.flatten(), context)
}

/// Converts a date to the registry's time.
pub(super) fn time_of(date: Option<DateTime<Utc>>) -> Option<RegistryTime> {
    date.map(registry_time_of)
}

/// Distinguishes a field that is `null` (`Some(None)`) from an absent field (`None`, by `serde(default)`).
pub(super) fn present<'de, T, D>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    Option::deserialize(deserializer).map(Some)
}

/// Parses an optional value from its name. Any further form that the type's derived `Deserialize` accepts is
/// refused.
pub(super) fn named<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    let name = Option::<String>::deserialize(deserializer)?;
    name.map(|name| name.parse().map_err(D::Error::custom)).transpose()
}

/// Serializes a `WhenFull` as the name that [`named`] parses.
pub(super) fn name_of<S: Serializer>(when_full: &Option<WhenFull>, serializer: S) -> Result<S::Ok, S::Error> {
    when_full.map(WhenFull::as_str).serialize(serializer)
}
