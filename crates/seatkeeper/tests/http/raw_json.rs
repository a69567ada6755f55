//! JSON within strings within JSON, by the key with which the library `serde_json` marks JSON in a string.

/// The key. A parser that gives the key a meaning parses the string behind the key, with a new limit of depth.
pub(crate) const RAW_JSON: &str = "$serde_json::private::RawValue";

/// Levels of arrays around each string: with the object behind them, and two objects around all, just below the limit of
/// depth.
const ARRAYS: usize = 124;

/// Returns as many strings within strings as fit `bytes_max` bytes, each behind [`RAW_JSON`] within arrays. The arrays and
/// objects stay open, because a parser reaches their end only after all strings.
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

/// Escapes a text for a string of JSON. The escapes have one backslash each, so their length grows only linearly with each
/// further escape.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\u005c").replace('"', r"\u0022")
}
