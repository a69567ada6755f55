//! A password in a file, replaceable while the program runs.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, fs, io};

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions as _, Connection as _};
use tokio::sync::Mutex;
use tokio::time::timeout;

/// The server's error code for a wrong password.
const INVALID_PASSWORD: &str = "28P01";

/// Time limit for a login that tries a password.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(2);

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

    /// Returns the password that the server accepts: the password accepted last, or else the password in the file. The
    /// search tries each password by a login with `options`, for a single caller at a time.
    pub(crate) async fn find_accepted(&self, options: &PgConnectOptions) -> Result<String, sqlx::Error> {
        let mut accepted = self.accepted.lock().await;
        if let Some(password) = &*accepted {
            match log_in(options, password).await {
                Ok(()) => return Ok(password.clone()),
                Err(error) if is_wrong_password(&error) => {}
                Err(error) => return Err(error),
            }
        }
        let password = self.read()?;
        log_in(options, &password).await?;
        *accepted = Some(password.clone());
        Ok(password)
    }
}

impl fmt::Debug for PasswordFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PasswordFile").field(&self.path).finish()
    }
}

/// Logs in with a password, and disconnects.
async fn log_in(options: &PgConnectOptions, password: &str) -> Result<(), sqlx::Error> {
    let options = options.clone().password(password);
    let connection: PgConnection = timeout(LOGIN_TIMEOUT, options.connect())
        .await
        .map_err(|_| sqlx::Error::Io(io::Error::from(io::ErrorKind::TimedOut)))??;
    // A login that worked is enough.
    connection.close().await.ok();
    Ok(())
}

/// Returns whether the server rejected the password of a login.
pub(crate) fn is_wrong_password(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(|refused| refused.code()).is_some_and(|code| code == INVALID_PASSWORD)
}
