//! The data directory's own key: made at the first start, readable by its owner alone.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use jsonwebtoken::{DecodingKey, EncodingKey};

use crate::settings::{Algorithm, Settings};

/// The name of the key's file in the data directory.
pub const KEY_FILE_NAME: &str = "token-key.pem";

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
    /// The file holds no key of the kind that the settings name.
    #[error("{path} holds no key for {algorithm:?} in PEM")]
    NotAKey {
        /// The file.
        path: PathBuf,
        /// The algorithm that the settings name.
        algorithm: Algorithm,
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

/// The key that tokens are checked with; the data directory's own is made if it is missing.
pub(super) fn decoding(settings: &Settings) -> Result<DecodingKey, KeyError> {
    let auth = &settings.auth;
    if let (Algorithm::Hs256, Some(secret)) = (auth.algorithm, &auth.secret) {
        return Ok(DecodingKey::from_secret(secret.reveal().as_bytes()));
    }
    let path = path_of(settings);
    if auth.key_file.is_none() {
        make_if_missing(&path)?;
    }
    let text = read(&path)?;
    public_of(&text, auth.algorithm).ok_or(KeyError::NotAKey { path, algorithm: auth.algorithm })
}

/// Whether the file holds a key for tokens of this algorithm; else, why not. HS256 needs no file.
pub(crate) fn check_key_file(path: &Path, algorithm: Algorithm) -> Result<(), String> {
    let text = fs::read(path).map_err(|error| error.to_string())?;
    if algorithm == Algorithm::Hs256 || public_of(&text, algorithm).is_some() {
        return Ok(());
    }
    Err(format!("it holds no key for {algorithm:?} in PEM"))
}

/// The key that tokens are signed with: only an EdDSA private key or the secret of HS256 can sign here.
pub(super) fn encoding(settings: &Settings) -> Result<EncodingKey, KeyError> {
    let auth = &settings.auth;
    if auth.jwks_url.is_some() {
        return Err(KeyError::Elsewhere);
    }
    if let (Algorithm::Hs256, Some(secret)) = (auth.algorithm, &auth.secret) {
        return Ok(EncodingKey::from_secret(secret.reveal().as_bytes()));
    }
    let path = path_of(settings);
    let text = read(&path)?;
    let key = match auth.algorithm {
        Algorithm::EdDsa => EncodingKey::from_ed_pem(&text),
        Algorithm::Rs256 => EncodingKey::from_rsa_pem(&text),
        Algorithm::Es256 | Algorithm::Hs256 => EncodingKey::from_ec_pem(&text),
    };
    key.map_err(|_| KeyError::NotAKey { path, algorithm: auth.algorithm })
}

fn path_of(settings: &Settings) -> PathBuf {
    let own = || settings.ledger.data_dir.join(KEY_FILE_NAME);
    settings.auth.key_file.clone().unwrap_or_else(own)
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

fn read(path: &Path) -> Result<Vec<u8>, KeyError> {
    fs::read(path).map_err(|source| KeyError::File { path: path.into(), source })
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
