//! Where the operator's own keys are, and what is in it. The data directory's own is made at the first start, readable by
//! its owner alone.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use jsonwebtoken::{DecodingKey, EncodingKey};

use crate::settings::{Algorithm, SECRET_BYTES_MIN, Secret, Settings};

/// The name of the key's file in the data directory.
pub const KEY_FILE_NAME: &str = "token-key.pem";

/// How many keys a file may hold: each is tried on a token that none of them signed.
const KEYS_MAX: usize = 4;

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read or written.
    #[error("the token key {path}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The file does not hold keys of the kind that the settings name, and nothing else.
    #[error("{path} does not hold 1 to {KEYS_MAX} keys for {algorithm:?} in PEM")]
    NotAKey {
        /// The file.
        path: PathBuf,
        /// The algorithm that the settings name.
        algorithm: Algorithm,
    },
    /// The first key of the file does not sign license tokens.
    #[error("{path} does not hold 1 to {KEYS_MAX} Ed25519 keys in PEM, the first of them private")]
    NotASigningKey {
        /// The file.
        path: PathBuf,
    },
    /// The file does not hold secrets, one a line, and nothing else.
    #[error("{path} does not hold 1 to {KEYS_MAX} secrets of at least {SECRET_BYTES_MIN} bytes, one a line")]
    NotSecrets {
        /// The file.
        path: PathBuf,
    },
    /// The keys are published by an issuer, who alone signs by them.
    #[error("tokens come from whoever publishes the keys at auth.jwks_url")]
    Elsewhere,
    /// No client can be made that asks for keys.
    #[error("keys cannot be asked for at auth.jwks_url")]
    Client(#[from] reqwest::Error),
    /// No key can be made.
    #[error("no Ed25519 key could be made")]
    NotMade,
}

/// Where the operator's own keys are.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// The secret of HS256, in the settings.
    Secret(Secret),
    /// Secrets of HS256, one a line.
    SecretFile(PathBuf),
    /// Keys in PEM; `is_own`: the data directory's, made unless it is there.
    KeyFile { path: PathBuf, algorithm: Algorithm, is_own: bool },
}

impl Source {
    /// The one that the settings name.
    pub(super) fn of(settings: &Settings) -> Self {
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
    /// server is one process. `None` for nodes without such a file, for each node would believe only its own tokens.
    pub(super) fn for_license_tokens(settings: &Settings) -> Option<Self> {
        let file = settings.auth.license_token_key_file.as_ref();
        let is_own = file.is_none();
        let own = || settings.registry.is_memory().then(|| settings.ledger.data_dir.join(KEY_FILE_NAME));
        let path = file.cloned().or_else(own)?;
        Some(Self::KeyFile { path, algorithm: Algorithm::EdDsa, is_own })
    }

    /// Makes the data directory's own key, if it is that and is missing.
    pub(super) fn make_if_own(&self) -> Result<(), KeyError> {
        match self {
            Self::KeyFile { path, is_own: true, .. } => make_if_missing(path),
            Self::KeyFile { .. } | Self::Secret(_) | Self::SecretFile(_) => Ok(()),
        }
    }

    /// The file, if it is one.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Secret(_) => None,
            Self::SecretFile(path) | Self::KeyFile { path, .. } => Some(path),
        }
    }

    /// What is in the file; of a secret in the settings, nothing.
    pub(super) fn read(&self) -> Result<Vec<u8>, KeyError> {
        self.path().map_or_else(
            || Ok(Vec::new()),
            |path| fs::read(path).map_err(|source| KeyError::File { path: path.into(), source }),
        )
    }

    /// The keys in this text that tokens are checked with.
    pub(super) fn keys_in(&self, text: &[u8]) -> Result<Arc<[DecodingKey]>, KeyError> {
        match self {
            Self::Secret(secret) => Ok(Arc::from([DecodingKey::from_secret(secret.reveal().as_bytes())])),
            Self::SecretFile(path) => {
                let secrets = secrets_in(text).ok_or_else(|| KeyError::NotSecrets { path: path.clone() })?;
                Ok(secrets.into_iter().map(DecodingKey::from_secret).collect())
            }
            Self::KeyFile { path, algorithm, .. } => {
                let keys = blocks_in(text)
                    .and_then(|blocks| blocks.iter().map(|block| public_of(block, *algorithm)).collect());
                keys.ok_or_else(|| KeyError::NotAKey { path: path.clone(), algorithm: *algorithm })
            }
        }
    }

    /// The first key in this text, which signs: only an EdDSA private key or a secret of HS256 can sign here.
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

/// The key that tokens are signed with.
pub(super) fn encoding(settings: &Settings) -> Result<EncodingKey, KeyError> {
    if settings.auth.jwks_url.is_some() {
        return Err(KeyError::Elsewhere);
    }
    let source = Source::of(settings);
    source.signing_in(&source.read()?)
}

/// Whether the file holds keys for tokens of this algorithm; else, why not. HS256 needs no file.
pub(crate) fn check_key_file(path: &Path, algorithm: Algorithm) -> Result<(), String> {
    let text = fs::read(path).map_err(|error| error.to_string())?;
    let source = Source::KeyFile { path: path.to_owned(), algorithm, is_own: false };
    if algorithm == Algorithm::Hs256 || source.keys_in(&text).is_ok() {
        return Ok(());
    }
    Err(format!("it does not hold 1 to {KEYS_MAX} keys for {algorithm:?} in PEM"))
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

/// Whether the file holds secrets of HS256; else, why not.
pub(crate) fn check_secret_file(path: &Path) -> Result<(), String> {
    let text = fs::read(path).map_err(|error| error.to_string())?;
    let wanted = || {
        format!("it does not hold 1 to {KEYS_MAX} secrets of at least {SECRET_BYTES_MIN} bytes, one a line")
    };
    secrets_in(&text).map(drop).ok_or_else(wanted)
}

/// The lines of a text, if they all can be secrets and are not too many.
fn secrets_in(text: &[u8]) -> Option<Vec<&[u8]>> {
    let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let secrets: Vec<_> = lines.filter(|line| !line.is_empty()).collect();
    let fit = secrets.iter().all(|secret| secret.len() >= SECRET_BYTES_MIN);
    (fit && (1..=KEYS_MAX).contains(&secrets.len())).then_some(secrets)
}

/// The blocks of a text in PEM, each as a text of its own, if they are not too many. A certificate stands alone: those that
/// vouch for it are there to sign certificates, and not tokens.
fn blocks_in(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let blocks = pem::parse_many(text).ok().filter(|blocks| (1..=KEYS_MAX).contains(&blocks.len()))?;
    if blocks.len() > 1 && blocks.iter().any(|block| block.tag() == "CERTIFICATE") {
        return None;
    }
    Some(blocks.iter().map(|block| pem::encode(block).into_bytes()).collect())
}

fn public_of(text: &[u8], algorithm: Algorithm) -> Option<DecodingKey> {
    match algorithm {
        Algorithm::EdDsa => public_of_private(text).or_else(|| DecodingKey::from_ed_pem(text).ok()),
        Algorithm::Rs256 => DecodingKey::from_rsa_pem(text).ok(),
        Algorithm::Es256 => DecodingKey::from_ec_pem(text).ok(),
        Algorithm::Hs256 => None,
    }
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
    // Written aside and linked in place, so that two first starts agree on one whole key.
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
