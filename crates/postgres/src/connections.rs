//! A connection pool that survives a change of the password.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions as _, Connection as _, Postgres};
use tokio::time::timeout;

use crate::PostgresUrl;
use crate::kept::Kept;
use crate::password::{PasswordFile, is_wrong_password};

/// A connection idle for longer is pinged before use.
const TRUSTED_IDLE: Duration = Duration::from_secs(1);

/// Time limit of a ping. A connection without an answer is lost, and another takes its place. A network that loses three of
/// ten segments answers four of five pings in time, and half of them within 500 ms. There a new connection takes longer
/// than a second answer: it needs several round trips.
const PING_TIMEOUT: Duration = Duration::from_secs(1);

/// Time limit for the connection that finds out why a pool has none.
const EXPLAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// A pool of connections to a database. Clones share the pool.
///
/// If the server rejects the password, the pool looks for the right one: the password that a pool of a clone of the
/// [`PostgresUrl`] found last, and then the password in the file. A rotation goes unnoticed if the file is written before
/// the server learns the new password, even by a pool that made no connection since an earlier rotation.
#[derive(Clone, Debug)]
pub struct Connections {
    pool: PgPool,
    password: Option<PasswordFile>,
    kept: Arc<Kept>,
}

impl Connections {
    /// Creates a pool that connects on demand, with the pool options `pool`, the application name `name` and
    /// the server settings `settings`. Fails if the password file cannot be read.
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
                    // An error makes sqlx close the connection at once, and open another within the same call.
                    let silent = |_| Err(sqlx::Error::Io(io::Error::from(io::ErrorKind::TimedOut)));
                    timeout(PING_TIMEOUT, connection.ping()).await.unwrap_or_else(silent)?;
                }
                Ok(true)
            })
        });
        Ok(Self::new(pool.connect_lazy_with(options), url.password.clone()))
    }

    /// Creates a second pool with equal options, separate from the first.
    pub fn apart(&self) -> Self {
        let options = PgConnectOptions::clone(&self.pool.connect_options());
        Self::new(self.pool.options().clone().connect_lazy_with(options), self.password.clone())
    }

    /// Creates a pool of a single connection with equal options, separate from the first pool.
    pub fn single(&self) -> Self {
        let options = PgConnectOptions::clone(&self.pool.connect_options());
        let pool = self.pool.options().clone().max_connections(1);
        Self::new(pool.connect_lazy_with(options), self.password.clone())
    }

    fn new(pool: PgPool, password: Option<PasswordFile>) -> Self {
        Self { pool, password, kept: Arc::default() }
    }

    /// Acquires a connection for exclusive use. Retries with other passwords if the server rejects the password.
    pub async fn acquire(&self) -> Result<PoolConnection<Postgres>, sqlx::Error> {
        // A kept connection takes a place of the pool. A stale one returns, and its place is free.
        let is_exhausted =
            self.pool.num_idle() == 0 && self.pool.size() >= self.pool.options().get_max_connections();
        if is_exhausted && let Some(kept) = self.kept.take_idle_for_less_than(TRUSTED_IDLE) {
            return Ok(kept);
        }
        match (self.pool.acquire().await, &self.password) {
            (Err(error), Some(file)) if is_wrong_password(&error) => {
                let known = PgConnectOptions::clone(&self.pool.connect_options());
                let password = file.find_accepted(&known).await?;
                self.pool.set_connect_options(known.password(&password));
                self.pool.acquire().await
            }
            (acquired, _) => acquired,
        }
    }

    /// Acquires a connection like [`acquire`](Self::acquire). If the server is out of reach, the error names the server's
    /// address and the reason. The pool alone retries until its time is over, and says no more.
    pub async fn acquire_or_explain(&self) -> Result<PoolConnection<Postgres>, sqlx::Error> {
        match self.acquire().await {
            Err(sqlx::Error::PoolTimedOut) => Err(self.explain_timeout().await),
            Err(sqlx::Error::Io(error)) => Err(self.explain(&error)),
            acquired => acquired,
        }
    }

    /// Connects once more, outside the pool, and returns the reason why no connection comes.
    async fn explain_timeout(&self) -> sqlx::Error {
        let options = self.pool.connect_options();
        match timeout(EXPLAIN_TIMEOUT, options.connect()).await {
            Ok(Ok(connection)) => {
                connection.close().await.ok();
                sqlx::Error::PoolTimedOut
            }
            Ok(Err(sqlx::Error::Io(error))) => self.explain(&error),
            Ok(Err(error)) => error,
            Err(_) => self.explain(&io::Error::new(io::ErrorKind::TimedOut, "no answer in time")),
        }
    }

    /// Returns `reason` with the server's address and a remedy.
    fn explain(&self, reason: &io::Error) -> sqlx::Error {
        let options = self.pool.connect_options();
        let server = match options.get_socket() {
            Some(socket) => socket.display().to_string(),
            None => format!("{}:{}", options.get_host(), options.get_port()),
        };
        // A handshake of TLS fails with invalid data.
        let explained = if reason.kind() == io::ErrorKind::InvalidData {
            format!(
                "PostgreSQL at {server} has no certificate that this program trusts: {reason}; name the server's authority as \
                 sslrootcert in the URL, and the host as the certificate does"
            )
        } else {
            format!(
                "PostgreSQL at {server} cannot be reached: {reason}; check that the server runs, the network, and the \
                 address in the URL"
            )
        };
        sqlx::Error::Io(io::Error::new(reason.kind(), explained))
    }

    /// Acquires the connection kept last, or a connection of the pool if none is kept or the kept connection was
    /// idle for long.
    pub async fn acquire_kept(&self) -> Result<PoolConnection<Postgres>, sqlx::Error> {
        match self.kept.take_idle_for_less_than(TRUSTED_IDLE) {
            Some(connection) => Ok(connection),
            None => self.acquire().await,
        }
    }

    /// Keeps a connection for the next [`acquire_kept`](Self::acquire_kept), instead of a return to the pool. The
    /// pool would ping the connection, and then prefer another. A process of PostgreSQL that goes on with the same
    /// statement has all its data at hand.
    pub fn keep(&self, connection: PoolConnection<Postgres>) {
        self.kept.put(connection, &self.pool);
    }

    /// Returns the sqlx pool, for calls that need a pool. A pool does not read the password file, so a
    /// connection is acquired first: the server has just accepted the pool's password.
    pub async fn pool(&self) -> Result<&PgPool, sqlx::Error> {
        drop(self.acquire().await?);
        Ok(&self.pool)
    }

    /// Closes every connection. Later calls of `acquire` fail.
    pub async fn close(&self) {
        // The pool counts as closed from here on, and nothing more is kept.
        let closed = self.pool.close();
        self.kept.clear();
        closed.await;
    }
}
