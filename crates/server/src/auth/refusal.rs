//! Reasons for refusing a token.

use jsonwebtoken::errors::ErrorKind;
use seatkeeper_core::{NAME_BYTES_MAX, NAME_CHARS_MAX};
use tokio::task::JoinError;

use super::key::KEYS_MAX;

/// Longest accepted token, in bytes.
pub(super) const TOKEN_BYTES_MAX: usize = 8 * 1024;

/// A reason for refusing a token, in words for the log. The response never reveals the reason.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("no bearer token was sent")]
    Missing,
    #[error("the token differs from the token in the settings")]
    OtherToken,
    #[error("more than one Authorization header was sent")]
    Several,
    #[error("the token is longer than {TOKEN_BYTES_MAX} bytes")]
    TooLong,
    #[error("the token is not valid")]
    Invalid(#[from] jsonwebtoken::errors::Error),
    #[error("the token is not signed with auth.algorithm")]
    OtherAlgorithm,
    #[error("no known key has the token's key id (kid)")]
    UnknownKey,
    #[error("the token has no key id (kid), and the issuer publishes more than {KEYS_MAX} keys")]
    NoKeyId,
    #[error("the token has critical header parameters (crit), and the server supports none")]
    Critical,
    #[error("the token's issuer (iss) is not the issuer in the settings")]
    OtherIssuer,
    #[error("the token's type (typ) does not fit the token's issuer")]
    OtherType,
    #[error("a license token was used for a request other than for seats of its license")]
    LicenseTokenElsewhere,
    #[error("the token has expired")]
    Expired,
    #[error(
        "the token names no tenant or user of 1 to {NAME_CHARS_MAX} printable characters, at most {NAME_BYTES_MAX} bytes"
    )]
    Nameless,
}

impl Refusal {
    /// Returns `true` if no candidate key has signed the token.
    pub(super) fn is_invalid_signature(&self) -> bool {
        matches!(self, Self::Invalid(error) if *error.kind() == ErrorKind::InvalidSignature)
    }
}

/// A failed check of a token: the token is refused, or the check could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("the server has no key to check tokens with")]
    NoKeys,
    #[error("the fetch of the keys was cut off")]
    CutOff(#[from] JoinError),
}
