//! The client program of a request, as on record.

use garde::Validate;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use utoipa::ToSchema;

use super::ClientObject;
use super::fields::no_control_characters;

/// Longest name or version of a program, in characters. A name, a version and an SDK together fit a user agent.
const PART_CHARS_MAX: usize = 100;

/// The program that holds a seat. On record as `name/version (sdk)`.
#[derive(Deserialize, Validate, ToSchema)]
pub(crate) struct ClientProgram {
    /// Name of the program.
    #[garde(custom(part_field))]
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    /// Version of the program.
    #[garde(inner(custom(part_field)))]
    #[schema(min_length = 1, max_length = 100)]
    version: Option<String>,
    /// Client library, with its version.
    #[garde(inner(custom(part_field)))]
    #[schema(min_length = 1, max_length = 100)]
    sdk: Option<String>,
}

impl ClientProgram {
    /// Returns the program in the form of a user agent: `cad/7.1 (seatkeeper-python/0.1.0)`.
    pub(crate) fn to_user_agent(&self) -> String {
        let version = self.version.as_ref().map(|version| format!("/{version}"));
        let sdk = self.sdk.as_ref().map(|sdk| format!(" ({sdk})"));
        [Some(self.name.clone()), version, sdk].into_iter().flatten().collect()
    }

    /// Parses an optional program. An array is refused: its order would stand for the names of fields.
    pub(crate) fn optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Self>, D::Error> {
        let object = Option::<ClientObject>::deserialize(deserializer)?;
        let Some(ClientObject(object)) = object else { return Ok(None) };
        let program = Self::deserialize(Value::Object(object));
        program.map(Some).map_err(|error| D::Error::custom(format_args!("must name a program: {error}")))
    }
}

/// Checks a part of the name of a program: 1 to 100 characters, without control characters.
fn part_field(part: &str, _: &()) -> garde::Result {
    if part.is_empty() || part.chars().count() > PART_CHARS_MAX {
        return Err(garde::Error::new(format!("must have 1 to {PART_CHARS_MAX} characters")));
    }
    no_control_characters(part)
}
