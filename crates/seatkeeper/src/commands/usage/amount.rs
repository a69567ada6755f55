//! Amounts of usage, as shown in tables.

use std::fmt;

use serde::Deserialize;

/// An amount of usage with six decimal places, exact up to nine thousand million units.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Amount(f64);

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}", self.0)
    }
}
