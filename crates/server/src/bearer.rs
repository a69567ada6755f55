//! Bearer tokens from the settings: given as a value, or in a file that is reloaded.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::reload::{InFiles, Reload};
use crate::settings::{Secret, is_token};
use seatkeeper_engine::WorkerSet;

/// The reason why a file gives no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    /// The file cannot be read.
    #[error("{path} cannot be read")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The file holds no valid token.
    #[error("{path} does not hold a token: visible ASCII characters in one line, and not nothing")]
    NotAToken {
        /// The file.
        path: PathBuf,
    },
}

/// A token, replaced on reload. Clones share the token.
#[derive(Clone, Debug)]
pub(crate) struct BearerToken(Arc<RwLock<Secret>>);

/// The file of a token.
struct TokenFile {
    /// The token's name, for the log.
    name: &'static str,
    path: PathBuf,
    token: BearerToken,
}

impl BearerToken {
    /// Returns the token in `file`, or `fixed` without a file; `None` without either. A worker in `upkeep`
    /// reloads the file.
    pub(crate) fn from_settings(
        name: &'static str,
        fixed: Option<&Secret>,
        file: Option<&PathBuf>,
        upkeep: &WorkerSet,
    ) -> Result<Option<Self>, TokenFileError> {
        let Some(path) = file else { return Ok(fixed.cloned().map(Self::new)) };
        let token = Self::new(Secret::new(""));
        let file = TokenFile { name, path: path.clone(), token: token.clone() };
        let contents = file.read()?;
        file.adopt(&contents)?;
        upkeep.start(Reload::new(file, contents));
        Ok(Some(token))
    }

    fn new(token: Secret) -> Self {
        Self(Arc::new(RwLock::new(token)))
    }

    /// Returns the current token.
    pub(crate) fn now(&self) -> Secret {
        self.0.read().clone()
    }
}

impl InFiles for TokenFile {
    type Contents = Secret;
    type Fault = TokenFileError;

    fn name(&self) -> &'static str {
        self.name
    }

    fn read(&self) -> Result<Secret, TokenFileError> {
        let text = fs::read_to_string(&self.path);
        let text = text.map_err(|source| TokenFileError::Unreadable { path: self.path.clone(), source })?;
        Ok(Secret::new(text.trim_end()))
    }

    fn adopt(&self, token: &Secret) -> Result<(), TokenFileError> {
        if !is_token(token.reveal()) {
            return Err(TokenFileError::NotAToken { path: self.path.clone() });
        }
        *self.token.0.write() = token.clone();
        Ok(())
    }
}
