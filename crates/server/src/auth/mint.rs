//! Tokens minted with the server's own key, for operators and for trials.

use std::time::Duration;

use jsonwebtoken::Header;
use serde_json::{Map, Value};

use super::KeyError;
use super::key;
use crate::settings::Settings;
use seatkeeper_engine::wall_clock;

/// The content of a token to mint.
#[derive(Clone, Debug)]
pub struct TokenRequest {
    /// Tenant named by the token.
    pub tenant: String,
    /// User named by the token.
    pub user: String,
    /// Scopes of the token, separated by spaces.
    pub scopes: String,
    /// Lifetime of the token.
    pub ttl: Duration,
}

/// A failure to mint a token.
#[derive(Debug, thiserror::Error)]
pub enum MintError {
    /// No signing key is available.
    #[error("no key to sign with")]
    Key(#[from] KeyError),
    /// The key cannot sign tokens.
    #[error("the key does not sign tokens")]
    Signing(#[from] jsonwebtoken::errors::Error),
}

/// Mints a token that a server with the same settings accepts. The server must have started once before,
/// because the first start creates the key of the data directory.
pub fn mint(settings: &Settings, request: &TokenRequest) -> Result<String, MintError> {
    let auth = &settings.auth;
    let now = wall_clock::now().timestamp();
    let expires = now.saturating_add(i64::try_from(request.ttl.as_secs()).unwrap_or(i64::MAX));
    let mut claims = Map::new();
    claims.insert(auth.tenant_claim.clone(), request.tenant.clone().into());
    claims.insert(auth.user_claim.clone(), request.user.clone().into());
    if !request.scopes.is_empty() {
        claims.insert(auth.scope_claim.clone(), request.scopes.clone().into());
    }
    claims.insert("iat".into(), now.into());
    claims.insert("exp".into(), expires.into());
    let given = [("iss", &auth.issuer), ("aud", &auth.audience)];
    for (name, value) in given {
        if let Some(value) = value {
            claims.insert(name.into(), value.clone().into());
        }
    }
    let header = Header::new(auth.algorithm.into());
    Ok(jsonwebtoken::encode(&header, &Value::Object(claims), &key::encoding(settings)?)?)
}
