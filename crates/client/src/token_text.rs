//! The text of a bearer token.

/// Returns whether a text can be a token: one line of visible ASCII, without spaces.
pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}
