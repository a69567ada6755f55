//! Where a database is.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use sqlx::postgres::PgConnectOptions;

use crate::password::PasswordFile;

/// A database of a PostgreSQL server: `postgres://user:password@host:port/database?sslmode=…`. What it leaves
/// out comes from PostgreSQL's variables of the environment and `.pgpass`. It never shows the password.
#[derive(Clone)]
pub struct PostgresUrl {
    options: Box<PgConnectOptions>,
    pub(crate) password: Option<PasswordFile>,
}

/// A text that is no URL of a PostgreSQL database, and why.
#[derive(Debug, thiserror::Error)]
#[error("not a URL of a PostgreSQL database: {0}")]
pub struct NotAPostgresUrl(String);

impl PostgresUrl {
    /// With the password in this file, as it is whenever it is needed.
    pub fn with_password_file(self, path: PathBuf) -> Self {
        Self { password: Some(PasswordFile(path)), ..self }
    }

    /// How to connect, by the password as it is now.
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
