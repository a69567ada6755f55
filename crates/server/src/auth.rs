//! Who is calling: tokens, the keys they are checked with, and what a caller may do.

mod authorization;
mod caller;
mod claims;
mod jwks;
mod key;
mod keys;
mod license_tokens;
mod mint;
mod own_keys;
mod refusal;
mod verifier;

pub(crate) use authorization::bearer_of;
pub use caller::{Caller, Scopes};
pub use key::{KEY_FILE_NAME, KeyError};
pub(crate) use key::{check_key_file, check_secret_file, check_signing_key_file};
pub(crate) use license_tokens::{LICENSE_TOKEN_LIFETIME, machine_user};
pub use mint::{MintError, TokenRequest, mint};
pub(crate) use refusal::{Error, Refusal};
pub(crate) use verifier::{Verifier, tenant_from_text};
