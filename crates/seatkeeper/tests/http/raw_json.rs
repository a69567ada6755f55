//! JSON within strings within JSON, by the key with which the library `serde_json` marks JSON in a string.

/// The key. A parser that gives the key a meaning parses the string behind the key, with a new limit of depth.
pub(crate) const RAW_JSON: &str = "$serde_json::private::RawValue";

/// Levels of arrays around a string: with the object behind the arrays, and two outer objects, just below the limit of
/// depth.
const ARRAYS: usize = 124;

/// Returns as many strings within strings as fit `bytes_max` bytes, every string behind [`RAW_JSON`] within arrays. The
/// arrays and objects stay open, because a parser reaches the end of an array only after the last string.
pub(crate) fn strings_in_strings(bytes_max: usize) -> String {
    let mut json = "[".repeat(ARRAYS);
    loop {
        let next = format!("{}{{\"{RAW_JSON}\":\"{}\"", "[".repeat(ARRAYS), escaped(&json));
        if next.len() > bytes_max {
            return json;
        }
        json = next;
    }
}

/// Escapes a text for a string of JSON. An escape has a single backslash: the length of a text grows only linearly with
/// the number of escapings.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\u005c").replace('"', r"\u0022")
}
