//! Who is calling: tokens, the keys they are checked with, and what a caller may do.

mod caller;
mod claims;
mod jwks;
mod key;
mod keys;
mod mint;
mod own_keys;
mod verifier;

pub use caller::{Caller, Scopes};
pub use key::{KEY_FILE_NAME, KeyError};
pub(crate) use key::{check_key_file, check_secret_file};
pub use mint::{MintError, TokenRequest, mint};
pub(crate) use verifier::{Refusal, Verifier};
