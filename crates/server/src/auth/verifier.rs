//! Verification of tokens. A verified token is cached, and a repeated token costs only a check of the expiry.

use std::sync::Arc;

use jsonwebtoken::{DecodingKey, Validation};
use quick_cache::sync::Cache;
use seatkeeper_core::{TenantId, UserId, is_name};
use tokio::sync::watch;
use uuid::Uuid;

use super::claims::signed_by_any;
use super::key_changes::{Editions, KeyChanges};
use super::key_match::KeyMatch;
use super::keys::Keys;
use super::license_tokens::{LicenseTokens, is_license_type};
use super::refusal::{Error, Refusal, TOKEN_BYTES_MAX};
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
    /// `None`: the server gives and believes no license tokens.
    license_tokens: Option<Arc<LicenseTokens>>,
    /// Announces changes of the keys.
    editions: watch::Sender<Editions>,
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
        let keys = Keys::from_settings(settings)?;
        let license_tokens = LicenseTokens::new(settings)?.map(Arc::new);
        let (editions, _) = watch::channel(Editions::new(&keys, license_tokens.as_deref()));
        Ok(Self {
            keys,
            algorithm: auth.algorithm,
            validation: validation_of(auth),
            issuer: auth.issuer.clone(),
            claims: ClaimNames {
                tenant: auth.tenant_claim.clone(),
                user: auth.user_claim.clone(),
                scope: auth.scope_claim.clone(),
            },
            leeway_seconds: i64::try_from(auth.leeway_seconds).unwrap_or(i64::MAX),
            license_tokens,
            editions,
            remembered: Cache::new(TOKENS_REMEMBERED_MAX),
        })
    }

    /// Starts the workers that follow and announce changes of the keys.
    pub(crate) async fn keep_up(&self, upkeep: &WorkerSet) {
        self.keys.keep_up(upkeep).await;
        if let Some(license_tokens) = &self.license_tokens {
            license_tokens.keep_up(upkeep);
        }
        upkeep.start(KeyChanges {
            keys: self.keys.clone(),
            license_tokens: self.license_tokens.clone(),
            editions: self.editions.clone(),
        });
    }

    /// Returns the signer of license tokens; `None` if the server has no key for license tokens.
    pub(crate) fn license_tokens(&self) -> Option<&LicenseTokens> {
        self.license_tokens.as_deref()
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
        let is_current = |known: &Remembered| known.edition == self.edition_for(&known.caller);
        let known = self.remembered.get(token).filter(is_current);
        if let Some(Remembered { caller, .. }) = known {
            let expired = caller.expires_at_seconds.saturating_add(self.leeway_seconds) < now;
            return if expired { Err(Refusal::Expired.into()) } else { Ok(caller) };
        }
        let (caller, edition) = self.check(token).await?;
        let caller = Arc::new(caller);
        self.remembered.insert(token.into(), Remembered { caller: Arc::clone(&caller), edition });
        Ok(caller)
    }

    /// Waits until `token` is refused after a change of the keys.
    pub(crate) async fn until_refused(&self, token: &str) {
        let mut editions = self.editions.subscribe();
        // No change before the subscription is announced, so the token is verified first.
        while self.caller(token).await.is_ok() {
            if editions.changed().await.is_err() {
                return;
            }
        }
    }

    /// Returns the edition of the keys that count now for tokens of the caller's kind.
    fn edition_for(&self, caller: &Caller) -> u64 {
        match (caller.scopes.license, &self.license_tokens) {
            (Some(_), Some(license_tokens)) => license_tokens.edition(),
            (None, _) | (Some(_), None) => self.keys.edition(),
        }
    }

    /// Checks a token by the keys of its issuer. The issuer that the token claims chooses the keys, and nothing else: a token
    /// that lies about its issuer is not signed by a key of that issuer.
    async fn check(&self, token: &str) -> Result<(Caller, u64), Error> {
        let license_tokens = self.license_tokens.as_deref();
        if let Some(license_tokens) = license_tokens.filter(|tokens| tokens.are_claimed_by(token)) {
            return Ok(license_tokens.check(token)?);
        }
        let KeyMatch { keys, edition } = self.keys.for_token(token, self.algorithm).await?;
        match self.check_ordinary(token, &keys) {
            Err(refusal) if refusal.is_invalid_signature() => {
                let newer = self.keys.newer_for_token(token, edition).await?;
                let KeyMatch { keys, edition } = newer.ok_or(refusal)?;
                Ok((self.check_ordinary(token, &keys)?, edition))
            }
            checked => Ok((checked?, edition)),
        }
    }

    fn check_ordinary(&self, token: &str, keys: &[DecodingKey]) -> Result<Caller, Refusal> {
        let token = signed_by_any(token, keys, &self.validation)?;
        if is_license_type(&token.header) {
            return Err(Refusal::OtherType);
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
            tenant: tenant_from_text(tenant),
            user: UserId::new(user),
            scopes: Scopes::parse(claims.text(&self.claims.scope)),
            expires_at_seconds: claims.number("exp") as i64,
        })
    }
}

/// Returns the tenant named by `text`. A UUID is normalized, because different spellings name the same
/// tenant.
pub(crate) fn tenant_from_text(text: &str) -> TenantId {
    Uuid::try_parse(text).map_or_else(|_| TenantId::new(text), |uuid| TenantId::new(uuid.to_string()))
}
