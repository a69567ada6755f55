//! Usage of the tenant's capacities: what is on record, and what became of it at the sink.

mod answer;
pub(super) mod batches;
pub(super) mod reconcile;
pub(super) mod send;
pub(super) mod windows;

use chrono::{DateTime, Utc};
use seatkeeper_core::{RegistryTime, Window};

use crate::error::Error;
use crate::times::registry_time_of;

/// The span that `from` and `to` bound; without them, all time.
fn span_of(from: Option<DateTime<Utc>>, to: Option<DateTime<Utc>>) -> Result<Window, Error> {
    let from = from.map_or(RegistryTime::default(), registry_time_of);
    let to = to.map_or(RegistryTime::from_millis(u64::MAX), registry_time_of);
    Window::new(from, to).ok_or_else(|| Error::field("to", "must be after `from`"))
}
