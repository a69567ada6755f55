//! The keys that may have signed a token.

use std::sync::Arc;

use jsonwebtoken::DecodingKey;

/// Candidate keys for a token, with their edition.
pub(super) struct KeyMatch {
    pub(super) keys: Arc<[DecodingKey]>,
    pub(super) edition: u64,
}
