//! A password in a file, replaceable while the program runs.

use std::path::PathBuf;
use std::sync::Arc;
use std::{fmt, fs, io};

use tokio::sync::{Mutex, MutexGuard};

/// A password file. Clones share the password that the server accepted last.
#[derive(Clone)]
pub(crate) struct PasswordFile {
    path: PathBuf,
    accepted: Arc<Mutex<Option<String>>>,
}

impl PasswordFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, accepted: Arc::default() }
    }

    /// Returns the current password: the text of the file without the line ending.
    pub(crate) fn read(&self) -> Result<String, sqlx::Error> {
        let text = fs::read_to_string(&self.path).map_err(|error| {
            let what = format!("the password in {} cannot be read: {error}", self.path.display());
            sqlx::Error::Io(io::Error::new(error.kind(), what))
        })?;
        Ok(text.trim_end_matches(['\n', '\r']).to_owned())
    }

    /// Locks the password of this file that the server accepted last; `None` before the first change.
    pub(crate) async fn accepted(&self) -> MutexGuard<'_, Option<String>> {
        self.accepted.lock().await
    }
}

impl fmt::Debug for PasswordFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PasswordFile").field(&self.path).finish()
    }
}
