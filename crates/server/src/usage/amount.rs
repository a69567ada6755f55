//! Amounts of usage in answers.

use seatkeeper_core::Usage;
use serde::{Serialize, Serializer, ser};
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// An amount of usage in answers: a JSON number with all six decimal places. A binary fraction would not be
/// exact.
#[derive(Clone, Copy, Debug, ToSchema)]
#[schema(value_type = f64)]
pub(crate) struct Amount(pub(crate) Usage);

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.0.to_string()).map_err(ser::Error::custom)?.serialize(serializer)
    }
}
