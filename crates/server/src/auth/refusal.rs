//! Reasons for refusing a token.

use tokio::task::JoinError;

/// Longest accepted token, in bytes.
pub(super) const TOKEN_BYTES_MAX: usize = 8 * 1024;

/// Longest name of a tenant or user, in characters.
pub(super) const NAME_CHARS_MAX: usize = 255;

/// A reason for refusing a token, in words for the log. The response never reveals the reason.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("no bearer token was sent")]
    Missing,
    #[error("the token is not the one of the settings")]
    OtherToken,
    #[error("more than one Authorization header was sent")]
    Several,
    #[error("the token is longer than {TOKEN_BYTES_MAX} bytes")]
    TooLong,
    #[error("the token is not valid")]
    Invalid(#[from] jsonwebtoken::errors::Error),
    #[error("the token is not signed by the algorithm that is believed")]
    OtherAlgorithm,
    #[error("the token names a key that is not known")]
    UnknownKey,
    #[error("the token demands that a part of it is understood which is not (crit)")]
    Critical,
    #[error("the token is not of the issuer whose tokens are believed")]
    OtherIssuer,
    #[error("the token is of another type than its issuer's tokens are")]
    OtherType,
    #[error("the token is a license token, which opens nothing but seats of its license")]
    LicenseTokenElsewhere,
    #[error("the token has expired")]
    Expired,
    #[error("the token names no tenant or user of 1 to {NAME_CHARS_MAX} printable characters")]
    Nameless,
}

/// A failed check of a token: the token is refused, or the check could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("the keys that tokens are checked with are not there yet")]
    NoKeys,
    #[error("the look-up of a key was cut off")]
    CutOff(#[from] JoinError),
}
