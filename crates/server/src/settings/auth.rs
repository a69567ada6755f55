use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Checked, Misfit, Secret, web_address, within};

/// How tokens are signed. It comes from here, never from the token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Algorithm {
    /// Ed25519, with a key in the data directory that is made at the first start, or with `key_file`.
    #[default]
    #[serde(rename = "EdDSA")]
    EdDsa,
    /// RSA with SHA-256; needs `key_file` or `jwks_url`.
    #[serde(rename = "RS256")]
    Rs256,
    /// ECDSA on P-256; needs `key_file` or `jwks_url`.
    #[serde(rename = "ES256")]
    Es256,
    /// HMAC with SHA-256; needs `secret`.
    #[serde(rename = "HS256")]
    Hs256,
}

/// `[auth]`: whose tokens are believed.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AuthSettings {
    /// How tokens are signed: `EdDSA` (default), `RS256`, `ES256` or `HS256`. It comes from here, never from the token.
    #[schema(value_type = String)]
    pub algorithm: Algorithm,
    /// The file of the public key, in PEM, that tokens are checked with, or of up to 4: a token that any of them signed is
    /// believed. With EdDSA it may be absent (then the data directory's own key serves), or hold private keys
    /// (then `seatkeeper token` signs with the first). It is read again within seconds when it changes; what cannot
    /// be used is logged, and the old keys go on.
    #[schema(value_type = Option<String>)]
    pub key_file: Option<PathBuf>,
    /// Where the issuer of tokens publishes its keys, as a JSON Web Key Set: an `http` or `https` URL without user and
    /// password. Instead of `key_file`, and not with HS256.
    pub jwks_url: Option<String>,
    /// How often those keys are looked at, in seconds: 1 to 86,400. Default 300. A token that names an unknown key
    /// makes it happen at once, but not more than once in 30 s.
    pub jwks_refresh_seconds: u64,
    /// The shared secret of HS256: at least 32 bytes.
    #[schema(value_type = Option<String>)]
    pub secret: Option<Secret>,
    /// The file of such secrets, one a line, instead of `secret`: up to 4. A token that any of them signed is believed, and
    /// `seatkeeper token` signs with the first. It is read again as `key_file` is.
    #[schema(value_type = Option<String>)]
    pub secret_file: Option<PathBuf>,
    /// The `iss` that tokens must carry; absent: any.
    pub issuer: Option<String>,
    /// The `aud` that tokens must carry; absent: tokens with any `aud`, or none.
    pub audience: Option<String>,
    /// The claim that names the tenant. Default `tenant`.
    pub tenant_claim: String,
    /// The claim that names the user. Default `sub`.
    pub user_claim: String,
    /// The claim that lists the scopes, separated by spaces. Default `scope`.
    pub scope_claim: String,
    /// The `iss` of license tokens, which the server signs for whoever knows the key of a license. Tokens of no other issuer may
    /// have it. Default `seatkeeper`.
    pub license_token_issuer: String,
    /// The file of the Ed25519 key, in PEM, that license tokens are signed and checked by, or of up to 4: the first, a private
    /// key, signs, and a token that any of them signed is believed. Nodes need the same file. Absent: a server without other
    /// nodes uses the data directory's own key, and nodes give no license tokens. It is read again as `key_file` is.
    #[schema(value_type = Option<String>)]
    pub license_token_key_file: Option<PathBuf>,
    /// How far clocks may differ when `exp` and `nbf` are checked, in seconds: 0 to 300. Default 5.
    pub leeway_seconds: u64,
}

impl Default for AuthSettings {
    fn default() -> Self {
        Self {
            algorithm: Algorithm::EdDsa,
            key_file: None,
            jwks_url: None,
            jwks_refresh_seconds: 300,
            secret: None,
            secret_file: None,
            issuer: None,
            audience: None,
            tenant_claim: "tenant".into(),
            user_claim: "sub".into(),
            scope_claim: "scope".into(),
            license_token_issuer: "seatkeeper".into(),
            license_token_key_file: None,
            leeway_seconds: 5,
        }
    }
}

/// The shortest secret of HS256: as long as its hash (RFC 7518, 3.2).
pub(crate) const SECRET_BYTES_MIN: usize = 32;

impl AuthSettings {
    pub(super) fn checks(&self) -> Vec<Checked> {
        vec![
            within("auth.leeway_seconds", self.leeway_seconds, 0..=300, "want 0 to 300 seconds"),
            within(
                "auth.jwks_refresh_seconds",
                self.jwks_refresh_seconds,
                1..=86_400,
                "want 1 to 86,400 seconds",
            ),
            self.check_keys(),
            self.check_license_token_issuer(),
        ]
    }

    /// Tokens of two issuers are told apart by `iss`.
    fn check_license_token_issuer(&self) -> Checked {
        let issuer = &self.license_token_issuer;
        let misfit = |want| Misfit { key: "auth.license_token_issuer", got: issuer.clone(), want };
        if issuer.is_empty() || issuer.chars().any(char::is_control) {
            return Err(misfit("want a text without control characters, and not nothing"));
        }
        if self.issuer.as_ref() == Some(issuer) {
            return Err(misfit("want another text than auth.issuer"));
        }
        Ok(())
    }

    /// There is one thing that says whose tokens are believed.
    fn check_keys(&self) -> Checked {
        if let Some(url) = &self.jwks_url {
            return self.check_jwks(url);
        }
        if self.secret.is_some() && self.secret_file.is_some() {
            return Err(Misfit {
                key: "auth.secret_file",
                got: "a file beside a secret".into(),
                want: "want auth.secret or auth.secret_file, and not both",
            });
        }
        match (self.algorithm, &self.key_file, &self.secret) {
            (Algorithm::Rs256 | Algorithm::Es256, None, _) => Err(Misfit {
                key: "auth.key_file",
                got: "nothing".into(),
                want: "RS256 and ES256 want a file with the public key in PEM, or auth.jwks_url",
            }),
            (Algorithm::Hs256, _, None) if self.secret_file.is_none() => Err(Misfit {
                key: "auth.secret",
                got: "nothing".into(),
                want: "HS256 wants a secret of at least 32 bytes, or auth.secret_file",
            }),
            (Algorithm::Hs256, _, Some(secret)) if secret.reveal().len() < SECRET_BYTES_MIN => Err(Misfit {
                key: "auth.secret",
                got: format!("{} bytes", secret.reveal().len()),
                want: "HS256 wants a secret of at least 32 bytes",
            }),
            (Algorithm::EdDsa | Algorithm::Rs256 | Algorithm::Es256 | Algorithm::Hs256, _, _) => Ok(()),
        }
    }

    fn check_jwks(&self, url: &str) -> Result<(), Misfit> {
        web_address("auth.jwks_url", url)?;
        let misfit = |want| Misfit { key: "auth.jwks_url", got: "a URL".into(), want };
        if self.algorithm == Algorithm::Hs256 {
            return Err(misfit("HS256 has a secret and no public keys: want EdDSA, RS256 or ES256"));
        }
        if self.key_file.is_some() {
            return Err(misfit("want auth.key_file or auth.jwks_url, and not both"));
        }
        Ok(())
    }
}
