//! A password in a file, which may be replaced while this runs.

use std::path::PathBuf;
use std::{fs, io};

/// The file.
#[derive(Clone, Debug)]
pub(crate) struct PasswordFile(pub(crate) PathBuf);

impl PasswordFile {
    /// The password as it is now: the text, without the end of its line.
    pub(crate) fn read(&self) -> Result<String, sqlx::Error> {
        let text = fs::read_to_string(&self.0).map_err(|error| {
            let what = format!("the password in {} cannot be read: {error}", self.0.display());
            sqlx::Error::Io(io::Error::new(error.kind(), what))
        })?;
        Ok(text.trim_end_matches(['\n', '\r']).to_owned())
    }
}
