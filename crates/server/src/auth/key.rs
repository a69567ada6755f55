//! Location, parsing and creation of the operator's own keys. The key of the data directory is created at the
//! first start, readable by its owner alone.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use jsonwebtoken::{DecodingKey, EncodingKey};

use super::usable_key::can_verify;
use crate::settings::{Algorithm, SECRET_BYTES_MIN, Secret, Settings};

/// File name of the key in the data directory.
pub const KEY_FILE_NAME: &str = "token-key.pem";

/// Highest number of keys in a file, and of published keys that check a token without a key id. The limit bounds the cost
/// of a forged token, which is checked against every key.
pub(super) const KEYS_MAX: usize = 4;

/// The fault of a file with a private key for RS256 or ES256, and its remedy.
const PRIVATE_KEY_FAULT: &str = "holds a private key: the server only checks tokens of RS256 and ES256, and takes public \
                                 keys alone; make the public key with openssl pkey -in PRIVATE_KEY_FILE -pubout";

/// A failure to load or create a key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read or written.
    #[error("the token key {path}")]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the file system.
        #[source]
        source: io::Error,
    },
    /// The file is not a list of 1 to 4 PEM keys for the algorithm in the settings.
    #[error("{path} does not hold 1 to {KEYS_MAX} {} in PEM", wanted_keys(*algorithm))]
    NotAKey {
        /// Path of the file.
        path: PathBuf,
        /// Algorithm in the settings.
        algorithm: Algorithm,
    },
    /// The file holds a private key, and keys of its algorithm only check tokens.
    #[error("{path} {PRIVATE_KEY_FAULT}")]
    PrivateKey {
        /// Path of the file.
        path: PathBuf,
    },
    /// The first key of the file does not sign.
    #[error("{path} does not hold 1 to {KEYS_MAX} Ed25519 keys in PEM, the first of them private")]
    NotASigningKey {
        /// The file.
        path: PathBuf,
    },
    /// The file is not a list of 1 to 4 secrets on separate lines, or a secret is too short.
    #[error("{path} does not hold 1 to {KEYS_MAX} secrets of at least {SECRET_BYTES_MIN} bytes, one a line")]
    NotSecrets {
        /// Path of the file.
        path: PathBuf,
    },
    /// An issuer publishes the keys, and only the issuer can sign tokens.
    #[error("tokens come from whoever publishes the keys at auth.jwks_url")]
    Elsewhere,
    /// No HTTP client could be built for fetching keys.
    #[error("keys cannot be asked for at auth.jwks_url")]
    Client(#[from] reqwest::Error),
    /// The generation of a key failed.
    #[error("no Ed25519 key could be made")]
    NotMade,
}

/// Location of the operator's own keys.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// A secret for HS256, in the settings.
    Secret(Secret),
    /// A file of secrets for HS256, on separate lines.
    SecretFile(PathBuf),
    /// A file of PEM keys. `is_own` marks the key of the data directory, created if missing.
    KeyFile { path: PathBuf, algorithm: Algorithm, is_own: bool },
}

impl Source {
    /// Returns the location named by the settings, by default the key of the data directory.
    pub(super) fn from_settings(settings: &Settings) -> Self {
        let auth = &settings.auth;
        match (auth.algorithm, &auth.secret, &auth.secret_file) {
            (Algorithm::Hs256, _, Some(path)) => Self::SecretFile(path.clone()),
            (Algorithm::Hs256, Some(secret), None) => Self::Secret(secret.clone()),
            (algorithm, _, _) => {
                let own = || settings.ledger.data_dir.join(KEY_FILE_NAME);
                let path = auth.key_file.clone().unwrap_or_else(own);
                Self::KeyFile { path, algorithm, is_own: auth.key_file.is_none() }
            }
        }
    }

    /// Returns the file of the keys of license tokens: the file that the settings name, or the data directory's own key if the
    /// server is one process. `None` for nodes without such a file, because each node would accept only its own tokens.
    pub(super) fn for_license_tokens(settings: &Settings) -> Option<Self> {
        let file = settings.auth.license_token_key_file.as_ref();
        let is_own = file.is_none();
        let own = || settings.registry.is_memory().then(|| settings.ledger.data_dir.join(KEY_FILE_NAME));
        let path = file.cloned().or_else(own)?;
        Some(Self::KeyFile { path, algorithm: Algorithm::EdDsa, is_own })
    }

    /// Creates the key of the data directory if missing. A configured file or secret is left alone.
    pub(super) fn make_if_own(&self) -> Result<(), KeyError> {
        match self {
            Self::KeyFile { path, is_own: true, .. } => make_if_missing(path),
            Self::KeyFile { .. } | Self::Secret(_) | Self::SecretFile(_) => Ok(()),
        }
    }

    /// Returns the path of the file, or `None` for a secret in the settings.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Secret(_) => None,
            Self::SecretFile(path) | Self::KeyFile { path, .. } => Some(path),
        }
    }

    /// Reads the file. Returns no bytes for a secret in the settings.
    pub(super) fn read(&self) -> Result<Vec<u8>, KeyError> {
        self.path().map_or_else(
            || Ok(Vec::new()),
            |path| fs::read(path).map_err(|source| KeyError::File { path: path.into(), source }),
        )
    }

    /// Parses the keys that verify tokens.
    pub(super) fn keys_in(&self, text: &[u8]) -> Result<Arc<[DecodingKey]>, KeyError> {
        match self {
            Self::Secret(secret) => Ok(Arc::from([DecodingKey::from_secret(secret.reveal().as_bytes())])),
            Self::SecretFile(path) => {
                let secrets = secrets_in(text).ok_or_else(|| KeyError::NotSecrets { path: path.clone() })?;
                Ok(secrets.into_iter().map(DecodingKey::from_secret).collect())
            }
            Self::KeyFile { path, algorithm, .. } => {
                if matches!(algorithm, Algorithm::Rs256 | Algorithm::Es256) && holds_private_key(text) {
                    return Err(KeyError::PrivateKey { path: path.clone() });
                }
                let keys = blocks_in(text)
                    .and_then(|blocks| blocks.iter().map(|block| public_of(block, *algorithm)).collect());
                keys.ok_or_else(|| KeyError::NotAKey { path: path.clone(), algorithm: *algorithm })
            }
        }
    }

    /// Parses the signing key, the first key in `text`. Only an Ed25519 private key or an HS256 secret can
    /// sign, because the key files of the other algorithms hold public keys.
    pub(super) fn signing_in(&self, text: &[u8]) -> Result<EncodingKey, KeyError> {
        match self {
            Self::Secret(secret) => Ok(EncodingKey::from_secret(secret.reveal().as_bytes())),
            Self::SecretFile(path) => {
                let first = secrets_in(text).and_then(|secrets| secrets.first().copied());
                first.map(EncodingKey::from_secret).ok_or_else(|| KeyError::NotSecrets { path: path.clone() })
            }
            Self::KeyFile { path, algorithm, .. } => {
                let first = blocks_in(text).and_then(|blocks| blocks.into_iter().next()).unwrap_or_default();
                let key = match algorithm {
                    Algorithm::EdDsa => EncodingKey::from_ed_pem(&first),
                    Algorithm::Rs256 => EncodingKey::from_rsa_pem(&first),
                    Algorithm::Es256 | Algorithm::Hs256 => EncodingKey::from_ec_pem(&first),
                };
                key.map_err(|_| KeyError::NotAKey { path: path.clone(), algorithm: *algorithm })
            }
        }
    }
}

/// Returns the key that signs tokens, or `Err(Elsewhere)` if an issuer publishes the keys.
pub(super) fn encoding(settings: &Settings) -> Result<EncodingKey, KeyError> {
    if settings.auth.jwks_url.is_some() {
        return Err(KeyError::Elsewhere);
    }
    let source = Source::from_settings(settings);
    source.signing_in(&source.read()?)
}

/// Reads a key file of a region.
pub(crate) fn read_region_key(path: &Path) -> Result<Vec<u8>, KeyError> {
    region_source(path).read()
}

/// Returns the private key that signs requests to peer regions, from the text of its file.
pub(crate) fn region_signing_key(path: &Path, text: &[u8]) -> Result<EncodingKey, KeyError> {
    let refused = |_| KeyError::NotASigningKey { path: path.into() };
    region_source(path).signing_in(text).map_err(refused)
}

/// Returns the public keys of a peer region, from the text of their file.
pub(crate) fn region_public_keys(path: &Path, text: &[u8]) -> Result<Arc<[DecodingKey]>, KeyError> {
    region_source(path).keys_in(text)
}

fn region_source(path: &Path) -> Source {
    Source::KeyFile { path: path.to_owned(), algorithm: Algorithm::EdDsa, is_own: false }
}

/// Checks that the file holds keys for `algorithm`, and otherwise returns the reason in words. For HS256,
/// which needs no key file, a readable file suffices.
pub(crate) fn check_key_file(path: &Path, algorithm: Algorithm) -> Result<(), String> {
    let text = fs::read(path).map_err(|error| error.to_string())?;
    let source = Source::KeyFile { path: path.to_owned(), algorithm, is_own: false };
    if algorithm == Algorithm::Hs256 {
        return Ok(());
    }
    source.keys_in(&text).map(drop).map_err(|error| match matches!(error, KeyError::PrivateKey { .. }) {
        true => format!("it {PRIVATE_KEY_FAULT}"),
        false => format!("it does not hold 1 to {KEYS_MAX} {} in PEM", wanted_keys(algorithm)),
    })
}

/// Checks that the file holds keys of license tokens. Returns the reason as an error if it does not.
pub(crate) fn check_signing_key_file(path: &Path) -> Result<(), String> {
    let text = fs::read(path).map_err(|error| error.to_string())?;
    let source = Source::KeyFile { path: path.to_owned(), algorithm: Algorithm::EdDsa, is_own: false };
    if source.keys_in(&text).is_ok() && source.signing_in(&text).is_ok() {
        return Ok(());
    }
    Err(format!("it does not hold 1 to {KEYS_MAX} Ed25519 keys in PEM, the first of them private"))
}

/// Checks that the file holds secrets for HS256, and otherwise returns the reason in words.
pub(crate) fn check_secret_file(path: &Path) -> Result<(), String> {
    let text = fs::read(path).map_err(|error| error.to_string())?;
    let wanted = || {
        format!("it does not hold 1 to {KEYS_MAX} secrets of at least {SECRET_BYTES_MIN} bytes, one a line")
    };
    secrets_in(&text).map(drop).ok_or_else(wanted)
}

/// Splits a text into secrets, one per line. Returns `None` if a secret is too short, or if there are not 1
/// to `KEYS_MAX` secrets.
fn secrets_in(text: &[u8]) -> Option<Vec<&[u8]>> {
    let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let secrets: Vec<_> = lines.filter(|line| !line.is_empty()).collect();
    let fit = secrets.iter().all(|secret| secret.len() >= SECRET_BYTES_MIN);
    (fit && (1..=KEYS_MAX).contains(&secrets.len())).then_some(secrets)
}

/// Splits a PEM text into 1 to `KEYS_MAX` blocks. A certificate must be the only block, because the rest of a
/// certificate chain signs certificates, not tokens.
fn blocks_in(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let blocks = pem::parse_many(text).ok().filter(|blocks| (1..=KEYS_MAX).contains(&blocks.len()))?;
    if blocks.len() > 1 && blocks.iter().any(|block| block.tag() == "CERTIFICATE") {
        return None;
    }
    Some(blocks.iter().map(|block| pem::encode(block).into_bytes()).collect())
}

/// Returns the keys in a file for `algorithm`, in words.
fn wanted_keys(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::EdDsa => "keys for EdDSA (Ed25519)",
        Algorithm::Rs256 => "public keys for RS256 (RSA, 2,048 to 8,192 bits)",
        Algorithm::Es256 => "public keys for ES256 (on the curve P-256)",
        Algorithm::Hs256 => "keys for HS256",
    }
}

fn holds_private_key(text: &[u8]) -> bool {
    pem::parse_many(text).is_ok_and(|blocks| blocks.iter().any(|block| block.tag().ends_with("PRIVATE KEY")))
}

fn public_of(text: &[u8], algorithm: Algorithm) -> Option<DecodingKey> {
    let key = match algorithm {
        Algorithm::EdDsa => public_of_private(text).or_else(|| DecodingKey::from_ed_pem(text).ok()),
        Algorithm::Rs256 => DecodingKey::from_rsa_pem(text).ok(),
        Algorithm::Es256 => DecodingKey::from_ec_pem(text).ok(),
        Algorithm::Hs256 => None,
    };
    key.filter(|key| can_verify(key, algorithm))
}

fn public_of_private(text: &[u8]) -> Option<DecodingKey> {
    let private = pem::parse(text).ok().filter(|block| block.tag() == "PRIVATE KEY")?;
    let pair = Ed25519KeyPair::from_pkcs8(private.contents()).ok()?;
    Some(DecodingKey::from_ed_der(pair.public_key().as_ref()))
}

fn make_if_missing(path: &Path) -> Result<(), KeyError> {
    let pair = Ed25519KeyPair::generate().map_err(|_| KeyError::NotMade)?;
    let der = pair.to_pkcs8v1().map_err(|_| KeyError::NotMade)?;
    let text = pem::encode(&pem::Pem::new("PRIVATE KEY", der.as_ref()));
    let at = |source| KeyError::File { path: path.into(), source };
    if let Some(directory) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(at)?;
    }
    // The key is written to a temporary file and then hard-linked, so that two concurrent first starts agree
    // on a complete key.
    let aside = path.with_extension(format!("pem.{}", std::process::id()));
    let written = write_private(&aside, text.as_bytes()).and_then(|()| fs::hard_link(&aside, path));
    let _ = fs::remove_file(&aside);
    match written {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(at(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn write_private(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text)?;
    file.sync_all()
}

#[cfg(test)]
mod tests;
