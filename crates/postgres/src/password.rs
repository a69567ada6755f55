//! A password in a file, replaceable while the program runs.

use std::path::PathBuf;
use std::{fs, io};

/// The path of a password file.
#[derive(Clone, Debug)]
pub(crate) struct PasswordFile(pub(crate) PathBuf);

impl PasswordFile {
    /// Returns the current password: the text of the file without the line ending.
    pub(crate) fn read(&self) -> Result<String, sqlx::Error> {
        let text = fs::read_to_string(&self.0).map_err(|error| {
            let what = format!("the password in {} cannot be read: {error}", self.0.display());
            sqlx::Error::Io(io::Error::new(error.kind(), what))
        })?;
        Ok(text.trim_end_matches(['\n', '\r']).to_owned())
    }
}
