//! The token that the sink wants.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::reload::InFiles;
use crate::settings::{Secret, is_sink_token};

/// Why usage cannot be brought to the sink.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// No client can be made.
    #[error("no client can be made")]
    Client(#[from] reqwest::Error),
    /// The token's file cannot be read.
    #[error("{path} cannot be read")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The token's file holds something else.
    #[error("{path} does not hold a token: visible ASCII characters in one line, and not nothing")]
    NotAToken {
        /// The file.
        path: PathBuf,
    },
}

/// The token in a file, as it is there now. A clone shares it.
#[derive(Clone, Debug)]
pub(super) struct TokenFile {
    path: PathBuf,
    token: Arc<RwLock<Secret>>,
}

impl TokenFile {
    /// The token in this file.
    pub(super) fn of(path: PathBuf) -> Result<Self, SinkError> {
        let file = Self { path, token: Arc::new(RwLock::new(Secret::new(""))) };
        file.adopt(&file.read()?)?;
        Ok(file)
    }

    /// What counts now.
    pub(super) fn token(&self) -> Secret {
        self.token.read().clone()
    }
}

impl InFiles for TokenFile {
    type Contents = Secret;
    type Fault = SinkError;

    fn name(&self) -> &'static str {
        "token of the sink"
    }

    fn read(&self) -> Result<Secret, SinkError> {
        let text = fs::read_to_string(&self.path);
        let text = text.map_err(|source| SinkError::Unreadable { path: self.path.clone(), source })?;
        Ok(Secret::new(text.trim_end()))
    }

    fn adopt(&self, token: &Secret) -> Result<(), SinkError> {
        if !is_sink_token(token.reveal()) {
            return Err(SinkError::NotAToken { path: self.path.clone() });
        }
        *self.token.write() = token.clone();
        Ok(())
    }
}
