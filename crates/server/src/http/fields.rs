//! Validators of fields, shared by several APIs.

use seatkeeper_core::{NAME_BYTES_MAX, NAME_CHARS_MAX};
use serde_json::Value;

use super::ClientObject;

/// Longest user agent, in characters.
pub(crate) const USER_AGENT_CHARS_MAX: usize = 500;

/// Longest JSON object of a client's own content, in bytes of text.
const OBJECT_BYTES_MAX: usize = 4 * 1024;

/// Checks a name: 1 to 255 characters in at most 512 bytes, without control characters.
pub(crate) fn name_field(name: &str, _: &()) -> garde::Result {
    let length = name.chars().count();
    if length == 0 || length > NAME_CHARS_MAX {
        return Err(garde::Error::new(format!("must have 1 to {NAME_CHARS_MAX} characters")));
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(garde::Error::new(format!("must have at most {NAME_BYTES_MAX} bytes in UTF-8")));
    }
    no_control_characters(name)
}

/// Checks that a text has no control characters.
pub(super) fn no_control_characters(text: &str) -> garde::Result {
    if text.chars().any(char::is_control) {
        return Err(garde::Error::new("must not hold control characters"));
    }
    Ok(())
}

/// Checks a name if present.
pub(crate) fn optional_name_field(name: &Option<String>, context: &()) -> garde::Result {
    name.as_deref().map_or(Ok(()), |name| name_field(name, context))
}

/// Checks a user agent if present: up to 500 characters, without control characters.
pub(crate) fn user_agent_field(name: &Option<String>, _: &()) -> garde::Result {
    let Some(name) = name else { return Ok(()) };
    if name.chars().count() > USER_AGENT_CHARS_MAX {
        return Err(garde::Error::new(format!("must have at most {USER_AGENT_CHARS_MAX} characters")));
    }
    no_control_characters(name)
}

/// Checks a JSON object if present: at most 4 KiB, without NUL characters.
pub(crate) fn object_field(object: &Option<ClientObject>, _: &()) -> garde::Result {
    let Some(ClientObject(object)) = object else { return Ok(()) };
    let text = serde_json::to_string(object).map_err(|_| garde::Error::new("must be a JSON object"))?;
    if text.len() > OBJECT_BYTES_MAX {
        return Err(garde::Error::new(format!("must have at most {OBJECT_BYTES_MAX} bytes as JSON")));
    }
    if object.iter().any(|(name, value)| name.contains('\0') || holds_nul(value)) {
        return Err(garde::Error::new("must not hold NUL characters"));
    }
    Ok(())
}

/// Returns `true` if a string at any depth holds a NUL, which not every database can store.
fn holds_nul(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(holds_nul),
        Value::Object(fields) => fields.iter().any(|(name, value)| name.contains('\0') || holds_nul(value)),
    }
}
