//! Checks tokens. A signature is checked once; while its token is remembered, only its dates are.

use std::sync::Arc;

use jsonwebtoken::{DecodingKey, Validation};
use quick_cache::sync::Cache;
use seatkeeper_core::{TenantId, UserId};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{Caller, KeyError, Scopes, key};
use crate::settings::{Algorithm, AuthSettings, Settings};
use crate::wall_clock;

/// How many valid tokens are remembered. An Ed25519 check costs more than all the rest of a heartbeat.
const TOKENS_REMEMBERED_MAX: usize = 20_000;

/// The longest token that is looked at.
const TOKEN_BYTES_MAX: usize = 8 * 1024;

/// The longest tenant or user.
const NAME_CHARS_MAX: usize = 255;

/// Why a token is not believed, in words for the log; the caller is told no more than that it is not.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("no bearer token was sent")]
    Missing,
    #[error("the token is longer than {TOKEN_BYTES_MAX} bytes")]
    TooLong,
    #[error("the token is not valid")]
    Invalid(#[from] jsonwebtoken::errors::Error),
    #[error("the token has expired")]
    Expired,
    #[error("the token names no tenant or user of 1 to {NAME_CHARS_MAX} printable characters")]
    Nameless,
}

/// Believes tokens that one key signed.
pub(crate) struct Verifier {
    key: DecodingKey,
    validation: Validation,
    claims: ClaimNames,
    leeway_seconds: i64,
    remembered: Cache<Box<str>, Arc<Caller>>,
}

struct ClaimNames {
    tenant: String,
    user: String,
    scope: String,
}

pub(super) fn algorithm_of(algorithm: Algorithm) -> jsonwebtoken::Algorithm {
    match algorithm {
        Algorithm::EdDsa => jsonwebtoken::Algorithm::EdDSA,
        Algorithm::Rs256 => jsonwebtoken::Algorithm::RS256,
        Algorithm::Es256 => jsonwebtoken::Algorithm::ES256,
        Algorithm::Hs256 => jsonwebtoken::Algorithm::HS256,
    }
}

fn validation_of(auth: &AuthSettings) -> Validation {
    let mut validation = Validation::new(algorithm_of(auth.algorithm));
    validation.leeway = auth.leeway_seconds;
    validation.validate_nbf = true;
    // The library checks these only where the token has them: what is demanded must also be there.
    let mut required = vec!["exp"];
    if let Some(issuer) = &auth.issuer {
        validation.set_issuer(&[issuer]);
        required.push("iss");
    }
    match &auth.audience {
        Some(audience) => {
            validation.set_audience(&[audience]);
            required.push("aud");
        }
        None => validation.validate_aud = false,
    }
    validation.set_required_spec_claims(&required);
    validation
}

impl Verifier {
    pub(crate) fn new(settings: &Settings) -> Result<Self, KeyError> {
        let auth = &settings.auth;
        Ok(Self {
            key: key::decoding(settings)?,
            validation: validation_of(auth),
            claims: ClaimNames {
                tenant: auth.tenant_claim.clone(),
                user: auth.user_claim.clone(),
                scope: auth.scope_claim.clone(),
            },
            leeway_seconds: i64::try_from(auth.leeway_seconds).unwrap_or(i64::MAX),
            remembered: Cache::new(TOKENS_REMEMBERED_MAX),
        })
    }

    /// Who the token speaks for.
    pub(crate) fn caller(&self, token: &str) -> Result<Arc<Caller>, Refusal> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(Refusal::TooLong);
        }
        let now = wall_clock::now().timestamp();
        if let Some(known) = self.remembered.get(token) {
            let expired = known.expires_at_seconds.saturating_add(self.leeway_seconds) < now;
            return if expired { Err(Refusal::Expired) } else { Ok(known) };
        }
        let caller = Arc::new(self.check(token)?);
        self.remembered.insert(token.into(), Arc::clone(&caller));
        Ok(caller)
    }

    fn check(&self, token: &str) -> Result<Caller, Refusal> {
        let claims = jsonwebtoken::decode::<Map<String, Value>>(token, &self.key, &self.validation)?.claims;
        let text = |name: &str| claims.get(name).and_then(Value::as_str).unwrap_or_default();
        let (tenant, user) = (text(&self.claims.tenant), text(&self.claims.user));
        if !is_name(tenant) || !is_name(user) {
            return Err(Refusal::Nameless);
        }
        let exp = claims.get("exp").and_then(Value::as_f64).unwrap_or_default();
        Ok(Caller {
            tenant: tenant_of(tenant),
            user: UserId::new(user),
            scopes: Scopes::parse(text(&self.claims.scope)),
            expires_at_seconds: exp as i64,
        })
    }
}

/// A tenant that is a UUID is the same tenant however the token spells it.
fn tenant_of(text: &str) -> TenantId {
    Uuid::try_parse(text).map_or_else(|_| TenantId::new(text), |uuid| TenantId::new(uuid.to_string()))
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().count() <= NAME_CHARS_MAX && !text.chars().any(char::is_control)
}
