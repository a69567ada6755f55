//! Tokens signed here, for operators and for trying things out.

use std::time::Duration;

use jsonwebtoken::Header;
use serde_json::{Map, Value};

use super::KeyError;
use super::key;
use crate::settings::Settings;
use seatkeeper_engine::wall_clock;

/// Whom a token speaks for.
#[derive(Clone, Debug)]
pub struct TokenRequest {
    /// The tenant.
    pub tenant: String,
    /// The user.
    pub user: String,
    /// The scopes, separated by spaces.
    pub scopes: String,
    /// For how long.
    pub ttl: Duration,
}

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum MintError {
    /// No key.
    #[error("no key to sign with")]
    Key(#[from] KeyError),
    /// The key does not sign.
    #[error("the key does not sign tokens")]
    Signing(#[from] jsonwebtoken::errors::Error),
}

/// Signs a token that a server with these settings believes. The data directory must have been started
/// once, for that makes its key.
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
