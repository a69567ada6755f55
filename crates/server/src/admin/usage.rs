//! Usage of the tenant's capacities: recorded usage, and its delivery to the sink.

mod answer;
pub(super) mod batches;
pub(super) mod reconcile;
pub(super) mod send;
pub(super) mod windows;

use chrono::{DateTime, Utc};
use seatkeeper_core::{RegistryTime, Window};

use crate::error::Error;
use crate::times::registry_time_of;

/// Returns the span from `from` to `to`. An absent bound leaves the span open on its side.
fn span_of(from: Option<DateTime<Utc>>, to: Option<DateTime<Utc>>) -> Result<Window, Error> {
    let from = from.map_or(RegistryTime::default(), registry_time_of);
    let to = to.map_or(RegistryTime::MAX, registry_time_of);
    Window::new(from, to).ok_or_else(|| Error::field("to", "must be after `from`"))
}
