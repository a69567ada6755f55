//! Checks of the files named by settings. A new setting for a file gets a line in [`Settings::file_faults`].

use std::fs;
use std::path::{Path, PathBuf};

use crate::auth;
use crate::settings::{Algorithm, Settings, is_token};

/// A file that does not fit its setting.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} = {}: {why}", path.display())]
pub struct FileFault {
    /// The key, with its section.
    pub key: &'static str,
    /// The file.
    pub path: PathBuf,
    /// The fault of the file.
    pub why: String,
}

/// A check of a file. The error names the fault.
type Check<'a> = &'a dyn Fn(&Path) -> Result<(), String>;

impl Settings {
    /// Checks every file named by the settings, as a start would, without creating a file. Returns all
    /// faults.
    pub fn file_faults(&self) -> Vec<FileFault> {
        let registry = &self.registry;
        let checks: [(_, _, Check<'_>); _] = [
            ("server.tls_cert_file", self.server.tls_cert_file.as_ref(), &has_pem),
            ("server.tls_key_file", self.server.tls_key_file.as_ref(), &has_pem),
            ("auth.key_file", self.auth.key_file.as_ref(), &|path| {
                auth::check_key_file(path, self.auth.algorithm)
            }),
            (
                "auth.license_token_key_file",
                self.auth.license_token_key_file.as_ref(),
                &auth::check_signing_key_file,
            ),
            ("auth.secret_file", self.auth.secret_file.as_ref(), &auth::check_secret_file),
            ("usage.sink_token_file", self.usage.sink_token_file.as_ref(), &has_token),
            ("metrics.token_file", self.metrics.token_file.as_ref(), &has_token),
            ("ledger.data_dir", Some(&self.ledger.data_dir), &is_directory_or_nothing),
            ("ledger.password_file", self.ledger.password_file.as_ref(), &has_text),
            ("registry.password_file", registry.password_file.as_ref(), &has_text),
            ("registry.sentinel_password_file", registry.sentinel_password_file.as_ref(), &has_text),
            ("registry.tls_ca_file", registry.tls_ca_file.as_ref(), &has_pem),
            ("registry.tls_cert_file", registry.tls_cert_file.as_ref(), &has_pem),
            ("registry.tls_key_file", registry.tls_key_file.as_ref(), &has_pem),
            ("region.key_file", self.region.key_file.as_ref(), &auth::check_signing_key_file),
        ];
        let fault = |(key, path, check): (_, Option<&PathBuf>, Check<'_>)| {
            let path = path?;
            check(path).err().map(|why| FileFault { key, path: path.clone(), why })
        };
        let peers = self.region.peers.iter().map(|peer| Some(&peer.public_key_file));
        let check: Check<'_> = &|path| auth::check_key_file(path, Algorithm::EdDsa);
        let peers = peers.map(|path| ("region.peers", path, check));
        checks.into_iter().chain(peers).filter_map(fault).collect()
    }
}

fn is_directory_or_nothing(path: &Path) -> Result<(), String> {
    if path.exists() && !path.is_dir() { Err("want a directory, or a place for one".into()) } else { Ok(()) }
}

fn has_text(path: &Path) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    if text.trim().is_empty() { Err("it is empty".into()) } else { Ok(()) }
}

fn has_token(path: &Path) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let wanted = "want visible ASCII characters in one line, and not nothing";
    if is_token(text.trim_end()) { Ok(()) } else { Err(wanted.into()) }
}

fn has_pem(path: &Path) -> Result<(), String> {
    let text = fs::read(path).map_err(|error| error.to_string())?;
    match pem::parse_many(text) {
        Ok(blocks) if !blocks.is_empty() => Ok(()),
        Ok(_) | Err(_) => Err("it holds nothing in PEM".into()),
    }
}
