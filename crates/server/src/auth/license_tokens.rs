//! License tokens: the server signs a license token for a program that knows the key of a license. A license token is valid
//! for seats of one license on one machine, and for nothing else.
//!
//! Two things keep license tokens apart from the tokens of callers, even where one key signs both: the issuer (`iss`) and
//! the type (`typ`, RFC 8725, 3.11).

use std::time::Duration;

use jsonwebtoken::{Header, Validation};
use seatkeeper_core::{TenantId, UserId};
use seatkeeper_engine::{WorkerSet, wall_clock};
use seatkeeper_ledger::licenses::{License, LicenseId};
use serde::Serialize;

use super::claims::{Claims, signed_by_any};
use super::own_keys::OwnKeys;
use super::refusal::Refusal;
use super::{Caller, KeyError, MintError, Scopes};
use crate::hash;
use crate::reload::Reload;
use crate::settings::{Algorithm, Settings};

/// Lifetime of a license token.
pub(crate) const LICENSE_TOKEN_LIFETIME: Duration = Duration::from_secs(15 * 60);

/// The `typ` in the header of a license token.
const TYPE: &str = "seatkeeper-license+jwt";

/// The beginning of the only scope of a license token; the license's id follows.
const SCOPE: &str = "license:";

/// Signs and checks license tokens.
pub(crate) struct LicenseTokens {
    keys: OwnKeys,
    issuer: String,
    validation: Validation,
}

/// Claims of a license token.
#[derive(Serialize)]
struct LicenseClaims<'a> {
    iss: &'a str,
    sub: &'a str,
    tenant: &'a str,
    scope: String,
    iat: i64,
    exp: i64,
}

impl LicenseTokens {
    /// Returns `None` if the server has no key for license tokens.
    pub(super) fn new(settings: &Settings) -> Result<Option<Self>, KeyError> {
        let auth = &settings.auth;
        let mut validation = Validation::new(Algorithm::EdDsa.into());
        validation.leeway = auth.leeway_seconds;
        validation.validate_aud = false;
        validation.set_required_spec_claims(&["exp"]);
        let keys = OwnKeys::for_license_tokens(settings)?;
        Ok(keys.map(|keys| Self { keys, issuer: auth.license_token_issuer.clone(), validation }))
    }

    /// Starts the worker that reads the keys again when their file changes.
    pub(super) fn keep_up(&self, upkeep: &WorkerSet) {
        if let Some((files, contents)) = self.keys.files() {
            upkeep.start(Reload::new(files, contents));
        }
    }

    /// Returns the edition of the keys that count now.
    pub(super) fn edition(&self) -> u64 {
        self.keys.edition()
    }

    /// Returns `true` if the token claims to be a license token. Nothing of the token is checked.
    pub(super) fn are_claimed_by(&self, token: &str) -> bool {
        let claims = jsonwebtoken::dangerous::insecure_decode_claims::<Claims>(token);
        claims.is_ok_and(|claims| claims.text("iss") == self.issuer)
    }

    /// Returns the caller that a license token speaks for, and the edition of the keys that the token was checked by.
    pub(super) fn check(&self, token: &str) -> Result<(Caller, u64), Refusal> {
        let found = self.keys.known();
        let token = signed_by_any(token, &found.keys, &self.validation)?;
        if token.header.typ.as_deref() != Some(TYPE) {
            return Err(Refusal::OtherType);
        }
        let claims = token.claims;
        if claims.text("iss") != self.issuer {
            return Err(Refusal::OtherIssuer);
        }
        let license = claims.text("scope").strip_prefix(SCOPE).and_then(|id| id.parse().ok());
        let (tenant, user) = (claims.text("tenant"), claims.text("sub"));
        let (Some(license), false, false) = (license, tenant.is_empty(), user.is_empty()) else {
            return Err(Refusal::Nameless);
        };
        let caller = Caller {
            tenant: TenantId::new(tenant),
            user: UserId::new(user),
            scopes: Scopes { license: Some(license), ..Scopes::default() },
            expires_at_seconds: claims.number("exp") as i64,
        };
        Ok((caller, found.edition))
    }

    /// Signs a token for seats of `license` on one machine.
    pub(crate) fn sign(&self, license: &License, machine_id: &str) -> Result<String, MintError> {
        let now = wall_clock::now().timestamp();
        let lifetime = i64::try_from(LICENSE_TOKEN_LIFETIME.as_secs()).unwrap_or_default();
        let user = machine_user(license.id, machine_id);
        let claims = LicenseClaims {
            iss: &self.issuer,
            sub: user.as_str(),
            tenant: license.tenant.as_str(),
            scope: format!("{SCOPE}{}", license.id),
            iat: now,
            exp: now.saturating_add(lifetime),
        };
        let mut header = Header::new(Algorithm::EdDsa.into());
        header.typ = Some(TYPE.to_owned());
        let key = self.keys.signing().ok_or(KeyError::NotMade)?;
        Ok(jsonwebtoken::encode(&header, &claims, &key)?)
    }
}

/// Returns `true` for the header of a license token.
pub(super) fn is_license_type(header: &Header) -> bool {
    header.typ.as_ref().is_some_and(|typ| typ.eq_ignore_ascii_case(TYPE))
}

/// Returns the user that the license token of a machine speaks for. Each license has its own users, so that a token for a
/// license does not reach sessions of another license on the same machine.
pub(crate) fn machine_user(license: LicenseId, machine_id: &str) -> UserId {
    let hash = u64::from_be_bytes(hash::digest(&[license.0.as_bytes(), machine_id.as_bytes()]));
    UserId::new(format!("machine:{hash:016x}"))
}
