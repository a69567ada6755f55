//! Verification of tokens. A verified token is cached, and a repeated token costs only a check of the expiry.

use std::sync::Arc;

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{DecodingKey, TokenData, Validation};
use quick_cache::sync::Cache;
use seatkeeper_core::{TenantId, UserId};
use uuid::Uuid;

use super::claims::Claims;
use super::keys::{KeyMatch, Keys};
use super::refusal::{Error, NAME_CHARS_MAX, Refusal, TOKEN_BYTES_MAX};
use super::{Caller, KeyError, Scopes};
use crate::settings::{Algorithm, AuthSettings, Settings};
use seatkeeper_engine::WorkerSet;
use seatkeeper_engine::wall_clock;

/// Capacity of the cache, in tokens. An Ed25519 verification costs more than the rest of a heartbeat.
const TOKENS_REMEMBERED_MAX: usize = 20_000;

/// Verifies tokens against the configured keys, and caches the callers.
pub(crate) struct Verifier {
    keys: Keys,
    algorithm: Algorithm,
    validation: Validation,
    issuer: Option<String>,
    claims: ClaimNames,
    leeway_seconds: i64,
    remembered: Cache<Box<str>, Remembered>,
}

/// The caller of a verified token, with the edition of the keys at the verification.
#[derive(Clone)]
struct Remembered {
    caller: Arc<Caller>,
    edition: u64,
}

struct ClaimNames {
    tenant: String,
    user: String,
    scope: String,
}

impl From<Algorithm> for jsonwebtoken::Algorithm {
    fn from(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::EdDsa => Self::EdDSA,
            Algorithm::Rs256 => Self::RS256,
            Algorithm::Es256 => Self::ES256,
            Algorithm::Hs256 => Self::HS256,
        }
    }
}

fn validation_of(auth: &AuthSettings) -> Validation {
    let mut validation = Validation::new(auth.algorithm.into());
    validation.leeway = auth.leeway_seconds;
    validation.validate_nbf = true;
    // The library ignores an absent `aud` claim, so a configured audience is required explicitly.
    let mut required = vec!["exp"];
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
            keys: Keys::from_settings(settings)?,
            algorithm: auth.algorithm,
            validation: validation_of(auth),
            issuer: auth.issuer.clone(),
            claims: ClaimNames {
                tenant: auth.tenant_claim.clone(),
                user: auth.user_claim.clone(),
                scope: auth.scope_claim.clone(),
            },
            leeway_seconds: i64::try_from(auth.leeway_seconds).unwrap_or(i64::MAX),
            remembered: Cache::new(TOKENS_REMEMBERED_MAX),
        })
    }

    /// Starts the worker that follows changes of the keys.
    pub(crate) async fn keep_up(&self, upkeep: &WorkerSet) {
        self.keys.keep_up(upkeep).await;
    }

    /// Returns `Err(NoKeys)` until a key is available.
    pub(crate) fn is_ready(&self) -> Result<(), Error> {
        self.keys.are_there()
    }

    /// Returns the caller named by a valid token, from the cache if possible.
    pub(crate) async fn caller(&self, token: &str) -> Result<Arc<Caller>, Error> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(Refusal::TooLong.into());
        }
        let now = wall_clock::now().timestamp();
        let known = self.remembered.get(token).filter(|known| known.edition == self.keys.edition());
        if let Some(Remembered { caller, .. }) = known {
            let expired = caller.expires_at_seconds.saturating_add(self.leeway_seconds) < now;
            return if expired { Err(Refusal::Expired.into()) } else { Ok(caller) };
        }
        let KeyMatch { keys, edition } = self.keys.for_token(token, self.algorithm).await?;
        let caller = Arc::new(self.check(token, &keys)?);
        self.remembered.insert(token.into(), Remembered { caller: Arc::clone(&caller), edition });
        Ok(caller)
    }

    /// Decodes a valid token signed by any of `keys`. The first key with a matching signature decides.
    fn signed_by_any(
        &self,
        token: &str,
        keys: &[DecodingKey],
    ) -> jsonwebtoken::errors::Result<TokenData<Claims>> {
        let mut refused = ErrorKind::InvalidSignature.into();
        for key in keys {
            match jsonwebtoken::decode::<Claims>(token, key, &self.validation) {
                Err(error) if *error.kind() == ErrorKind::InvalidSignature => refused = error,
                decided => return decided,
            }
        }
        Err(refused)
    }

    fn check(&self, token: &str, keys: &[DecodingKey]) -> Result<Caller, Refusal> {
        let token = self.signed_by_any(token, keys)?;
        if token.header.crit.is_some() {
            return Err(Refusal::Critical);
        }
        let claims = token.claims;
        // The issuer is compared here, because the library also accepts a list of issuers.
        if self.issuer.as_ref().is_some_and(|issuer| claims.text("iss") != issuer) {
            return Err(Refusal::OtherIssuer);
        }
        let (tenant, user) = (claims.text(&self.claims.tenant), claims.text(&self.claims.user));
        if !is_name(tenant) || !is_name(user) {
            return Err(Refusal::Nameless);
        }
        Ok(Caller {
            tenant: tenant_of(tenant),
            user: UserId::new(user),
            scopes: Scopes::parse(claims.text(&self.claims.scope)),
            expires_at_seconds: claims.number("exp") as i64,
        })
    }
}

/// Returns the tenant named by `text`. A UUID is normalized, because different spellings name the same
/// tenant.
fn tenant_of(text: &str) -> TenantId {
    Uuid::try_parse(text).map_or_else(|_| TenantId::new(text), |uuid| TenantId::new(uuid.to_string()))
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().count() <= NAME_CHARS_MAX && !text.chars().any(char::is_control)
}
