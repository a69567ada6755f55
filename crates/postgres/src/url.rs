//! URLs of databases.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use sqlx::postgres::PgConnectOptions;

use crate::password::PasswordFile;

/// A PostgreSQL database: `postgres://user:password@host:port/database?sslmode=…`. Omitted parts come from
/// PostgreSQL's environment variables and `.pgpass`. `Display` and `Debug` never show the password.
#[derive(Clone)]
pub struct PostgresUrl {
    options: Box<PgConnectOptions>,
    pub(crate) password: Option<PasswordFile>,
}

/// Error: the text is not a URL of a PostgreSQL database. Contains the cause.
#[derive(Debug, thiserror::Error)]
#[error("not a URL of a PostgreSQL database: {0}")]
pub struct NotAPostgresUrl(String);

impl PostgresUrl {
    /// Takes the password from the file at `path`, read again for every use. Pools of the URL and of clones share
    /// the password accepted last by the server.
    pub fn with_password_file(self, path: PathBuf) -> Self {
        Self { password: Some(PasswordFile::new(path)), ..self }
    }

    /// Returns the connect options with the current password.
    pub(crate) fn options(&self) -> Result<PgConnectOptions, sqlx::Error> {
        let options = PgConnectOptions::clone(&self.options);
        match &self.password {
            None => Ok(options),
            Some(file) => Ok(options.password(&file.read()?)),
        }
    }
}

impl FromStr for PostgresUrl {
    type Err = NotAPostgresUrl;
    fn from_str(text: &str) -> Result<Self, NotAPostgresUrl> {
        if !["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme)) {
            return Err(NotAPostgresUrl("it starts with postgres://".to_owned()));
        }
        text.parse()
            .map(|options| Self { options: Box::new(options), password: None })
            .map_err(|error: sqlx::Error| NotAPostgresUrl(error.to_string()))
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = &self.options;
        let (user, host, port) = (options.get_username(), options.get_host(), options.get_port());
        let database = options.get_database().unwrap_or(user);
        write!(f, "postgres://{user}@{host}:{port}/{database}")
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
