//! Connections to a database that go on being made after the password was changed.

use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{Connection as _, Postgres};

use crate::PostgresUrl;
use crate::password::PasswordFile;

/// What the server says to a wrong password.
const INVALID_PASSWORD: &str = "28P01";

/// A connection that was idle for longer is tried before it is used.
const TRUSTED_IDLE: Duration = Duration::from_secs(1);

/// Connections to a database. A clone is another handle on the same ones.
///
/// One that the server refuses for its password is tried once more, by the password as the file has it then: nobody
/// notices that it was changed, if the file is written before the server is told.
#[derive(Clone, Debug)]
pub struct Connections {
    pool: PgPool,
    password: Option<PasswordFile>,
}

impl Connections {
    /// Connections to the database that are made when they are needed, by these options of the pool and with these settings of the
    /// server. An error if the password cannot be read.
    pub fn lazy(
        url: &PostgresUrl,
        pool: PgPoolOptions,
        name: &str,
        settings: &[(&str, &str)],
    ) -> Result<Self, sqlx::Error> {
        let options = url.options()?.application_name(name).options(settings.iter().copied());
        let pool = pool.test_before_acquire(false).before_acquire(|connection, known| {
            Box::pin(async move {
                if known.idle_for > TRUSTED_IDLE {
                    connection.ping().await?;
                }
                Ok(true)
            })
        });
        Ok(Self { pool: pool.connect_lazy_with(options), password: url.password.clone() })
    }

    /// As many others, made likewise when they are needed.
    pub fn apart(&self) -> Self {
        let options = PgConnectOptions::clone(&self.pool.connect_options());
        Self { pool: self.pool.options().clone().connect_lazy_with(options), password: self.password.clone() }
    }

    /// How many there may be at a time.
    pub fn max(&self) -> u32 {
        self.pool.options().get_max_connections()
    }

    /// A connection that nobody else uses.
    pub async fn acquire(&self) -> Result<PoolConnection<Postgres>, sqlx::Error> {
        match (self.pool.acquire().await, &self.password) {
            (Err(error), Some(file)) if is_wrong_password(&error) => {
                let known = PgConnectOptions::clone(&self.pool.connect_options());
                self.pool.set_connect_options(known.password(&file.read()?));
                self.pool.acquire().await
            }
            (acquired, _) => acquired,
        }
    }

    /// The pool that they are in, for what can be done with a pool alone. It does not look at the file by itself, and so the
    /// server has just let this user in when it is given.
    pub async fn pool(&self) -> Result<&PgPool, sqlx::Error> {
        drop(self.acquire().await?);
        Ok(&self.pool)
    }

    /// Closes all of them; whoever asks for one from now on gets an error.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

fn is_wrong_password(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(|refused| refused.code()).is_some_and(|code| code == INVALID_PASSWORD)
}
