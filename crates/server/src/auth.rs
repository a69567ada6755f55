//! Authentication: bearer tokens, the keys that verify tokens, and the scopes of callers. A caller is known
//! only after a configured key has verified the token. A new source of keys gets a variant of `Keys`.

mod authorization;
mod caller;
mod claims;
mod jwks;
mod key;
mod key_changes;
mod key_match;
mod keys;
mod license_tokens;
mod mint;
mod own_keys;
mod refusal;
mod usable_key;
mod verifier;

pub(crate) use authorization::bearer_of;
pub use caller::{Caller, SCOPE_WORDS, Scopes};
pub use key::{KEY_FILE_NAME, KeyError};
pub(crate) use key::{
    check_key_file, check_secret_file, check_signing_key_file, read_region_key, region_public_keys,
    region_signing_key,
};
pub(crate) use license_tokens::{LICENSE_TOKEN_LIFETIME, machine_user};
pub use mint::{MintError, TokenRequest, mint};
pub(crate) use refusal::{Error, Refusal};
pub(crate) use verifier::{Verifier, tenant_from_text};
