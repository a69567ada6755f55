//! The section `[auth]`: the algorithm, the keys and the claims of accepted tokens.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Checked, InvalidSetting, Secret, web_address, within};

/// The algorithm of token signatures. The settings name the algorithm, never the token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Algorithm {
    /// Ed25519, with `key_file`, or with a key that the first start creates in the data directory.
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

/// `[auth]`: the keys and claims of accepted tokens.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AuthSettings {
    /// The algorithm of token signatures: `EdDSA` (default), `RS256`, `ES256` or `HS256`. The `alg` of a
    /// token never decides.
    #[schema(value_type = String)]
    pub algorithm: Algorithm,
    /// The file with up to 4 public keys, in PEM: RSA keys of 2,048 to 8,192 bits for RS256, keys on P-256 for ES256.
    /// A token signed by any of the keys is accepted. With EdDSA the file is optional (the data directory has a key of
    /// its own, which no other node has), or it may hold private keys (`seatkeeper token` signs with the first). A
    /// changed file is read again within seconds; an invalid file is logged, and the old keys stay in use.
    #[schema(value_type = Option<String>)]
    pub key_file: Option<PathBuf>,
    /// The URL of the token issuer's keys, a JSON Web Key Set: `http` or `https`, without user and password.
    /// An alternative to `key_file`; not for HS256.
    pub jwks_url: Option<String>,
    /// Interval at which the keys of `jwks_url` are fetched, in seconds: 1 to 86,400. Default 300. A token
    /// that no known key has signed triggers a fetch at once, but no more than one in 30 s.
    pub jwks_refresh_seconds: u64,
    /// The shared secret of HS256: at least 32 bytes.
    #[schema(value_type = Option<String>)]
    pub secret: Option<Secret>,
    /// The file with up to 4 shared secrets of HS256, one a line. An alternative to `secret`. A token signed
    /// by any of the secrets is accepted; `seatkeeper token` signs with the first. A changed file is read
    /// again, as `key_file` is.
    #[schema(value_type = Option<String>)]
    pub secret_file: Option<PathBuf>,
    /// The `iss` that tokens must carry. Absent: any `iss`.
    pub issuer: Option<String>,
    /// The `aud` that tokens must carry. Absent: any `aud`, or none; with `jwks_url` the start then warns, because
    /// tokens of the issuer for other applications are accepted.
    pub audience: Option<String>,
    /// The claim that names the tenant. Default `tenant`.
    pub tenant_claim: String,
    /// The claim that names the user. Default `sub`.
    pub user_claim: String,
    /// The claim that lists the scopes, separated by spaces. Default `scope`.
    pub scope_claim: String,
    /// The `iss` of license tokens, signed by the server for programs that know a license key. No other issuer
    /// may use the same `iss`. Default `seatkeeper`.
    pub license_token_issuer: String,
    /// The file with up to 4 Ed25519 keys of license tokens, in PEM. The first, a private key, signs; a token
    /// signed by any of the keys is accepted. Nodes need equal files. Absent: a single server uses the key of
    /// the data directory, and nodes issue no license tokens. A changed file is read again, as `key_file` is.
    #[schema(value_type = Option<String>)]
    pub license_token_key_file: Option<PathBuf>,
    /// Tolerated clock skew in checks of `exp` and `nbf`, in seconds: 0 to 300. Default 5.
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

/// The shortest secret of HS256: the length of the hash (RFC 7518, section 3.2).
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
        let invalid_setting =
            |want| InvalidSetting { key: "auth.license_token_issuer", got: issuer.clone(), want };
        if issuer.is_empty() || issuer.chars().any(char::is_control) {
            return Err(invalid_setting("want a text without control characters, and not nothing"));
        }
        if self.issuer.as_ref() == Some(issuer) {
            return Err(invalid_setting("want another text than auth.issuer"));
        }
        Ok(())
    }

    /// Checks that a single source of keys is configured, and that the source fits the algorithm.
    fn check_keys(&self) -> Checked {
        if let Some(url) = &self.jwks_url {
            return self.check_jwks(url);
        }
        if self.secret.is_some() && self.secret_file.is_some() {
            return Err(InvalidSetting {
                key: "auth.secret_file",
                got: "a file beside a secret".into(),
                want: "want auth.secret or auth.secret_file, and not both",
            });
        }
        match (self.algorithm, &self.key_file, &self.secret) {
            (Algorithm::Rs256 | Algorithm::Es256, None, _) => Err(InvalidSetting {
                key: "auth.key_file",
                got: "nothing".into(),
                want: "RS256 and ES256 want a file with the public key in PEM, or auth.jwks_url",
            }),
            (Algorithm::Hs256, _, None) if self.secret_file.is_none() => Err(InvalidSetting {
                key: "auth.secret",
                got: "nothing".into(),
                want: "HS256 wants a secret of at least 32 bytes, or auth.secret_file",
            }),
            (Algorithm::Hs256, _, Some(secret)) if secret.reveal().len() < SECRET_BYTES_MIN => {
                Err(InvalidSetting {
                    key: "auth.secret",
                    got: format!("{} bytes", secret.reveal().len()),
                    want: "HS256 wants a secret of at least 32 bytes",
                })
            }
            (Algorithm::EdDsa | Algorithm::Rs256 | Algorithm::Es256 | Algorithm::Hs256, _, _) => Ok(()),
        }
    }

    fn check_jwks(&self, url: &str) -> Result<(), InvalidSetting> {
        web_address("auth.jwks_url", url)?;
        let invalid_setting = |want| InvalidSetting { key: "auth.jwks_url", got: "a URL".into(), want };
        if self.algorithm == Algorithm::Hs256 {
            return Err(invalid_setting("HS256 has a secret and no public keys: want EdDSA, RS256 or ES256"));
        }
        if self.key_file.is_some() {
            return Err(invalid_setting("want auth.key_file or auth.jwks_url, and not both"));
        }
        Ok(())
    }
}
