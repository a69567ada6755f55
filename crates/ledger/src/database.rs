//! A common interface to the two databases of a ledger, SQLite and PostgreSQL.
//!
//! Differences belong in this module alone: opening a database, beginning a write, the few differing words of
//! SQL ([`Dialect`]), and classifying errors.

mod dialect;
#[cfg(test)]
mod explain;
mod postgres;
mod query;
mod sole_use;
mod sqlite;
mod value;

use chrono::{DateTime, Utc};
use sea_query::SelectStatement;
use seatkeeper_postgres::Connections;
use sqlx::migrate::Migrator;
use sqlx::postgres::PgDatabaseError;
use sqlx::{Sqlite, SqlitePool, Transaction};

pub(crate) use dialect::Dialect;
#[cfg(test)]
pub(crate) use explain::sqlite_plan;
use postgres::PgTx;
pub(crate) use postgres::{migrate as migrate_postgres, open as open_postgres};
use query::On;
pub(crate) use query::Query;
pub(crate) use sole_use::{OwnBuckets, SoleUseLock, refuse_in_sole_use};
pub(crate) use sqlite::{
    migrate as migrate_sqlite, open_readers as open_sqlite_readers, open_writer as open_sqlite_writer, own,
};
pub(crate) use value::{Readable, Row, Value};

use crate::Error;

/// Connections to a database.
#[derive(Clone, Debug)]
pub(crate) enum Pool {
    Sqlite(SqlitePool),
    Postgres(Connections),
}

/// The purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// A transaction. A dropped transaction is rolled back.
pub(crate) enum Tx {
    Sqlite(Transaction<'static, Sqlite>),
    Postgres(PgTx),
}

impl Pool {
    /// Prepares a statement to run on any connection of the pool.
    pub(crate) fn query(&self, statement: &'static str) -> Query<'_> {
        match self {
            Self::Sqlite(pool) => Query::of_sqlite(statement, On::Pool(pool)),
            Self::Postgres(pool) => Query::of_postgres(statement, On::Pool(pool)),
        }
    }

    /// Prepares a composed `SELECT` to run on any connection of the pool.
    pub(crate) fn select(&self, statement: &SelectStatement) -> Query<'_> {
        match self {
            Self::Sqlite(pool) => Query::select_of_sqlite(statement, On::Pool(pool)),
            Self::Postgres(pool) => Query::select_of_postgres(statement, On::Pool(pool)),
        }
    }

    /// Begins a write transaction.
    pub(crate) async fn begin(&self) -> Result<Tx, Error> {
        Ok(match self {
            Self::Sqlite(pool) => Tx::Sqlite(Box::pin(sqlite::begin_write(pool)).await?),
            Self::Postgres(pool) => Tx::Postgres(Box::pin(PgTx::begin(pool, "BEGIN")).await?),
        })
    }

    /// Begins a read transaction on one snapshot.
    pub(crate) async fn begin_snapshot(&self) -> Result<Tx, Error> {
        Ok(match self {
            Self::Sqlite(pool) => Tx::Sqlite(pool.begin().await?),
            Self::Postgres(pool) => Tx::Postgres(Box::pin(PgTx::begin(pool, postgres::SNAPSHOT)).await?),
        })
    }

    /// Returns the newest schema version known to the program.
    pub(crate) fn newest_version(&self) -> i64 {
        newest(match self {
            Self::Sqlite(_) => &sqlite::MIGRATIONS,
            Self::Postgres(_) => &postgres::MIGRATIONS,
        })
    }

    /// Returns the schema version of the database; 0 without tables.
    pub(crate) async fn schema_version(&self) -> Result<i64, Error> {
        let tables = match self {
            Self::Sqlite(_) => "SELECT COUNT(*) FROM sqlite_master WHERE name = '_sqlx_migrations'",
            Self::Postgres(_) => "SELECT COUNT(to_regclass('_sqlx_migrations'))",
        };
        if self.query(tables).scalar::<i64>().await? == 0 {
            return Ok(0);
        }
        Ok(self.query("SELECT COALESCE(MAX(version), 0) FROM _sqlx_migrations").scalar().await?)
    }

    /// Returns a separate pool of lazily opened connections to the same PostgreSQL. Over SQLite, returns the
    /// same pool, because only one connection may write.
    pub(crate) fn apart(&self) -> Self {
        match self {
            Self::Sqlite(_) => self.clone(),
            Self::Postgres(connections) => Self::Postgres(connections.apart()),
        }
    }

    pub(crate) async fn close(&self) {
        match self {
            Self::Sqlite(pool) => pool.close().await,
            Self::Postgres(pool) => pool.close().await,
        }
    }
}

impl Tx {
    /// Prepares a statement to run in the transaction.
    pub(crate) fn query(&mut self, statement: &'static str) -> Query<'_> {
        match self {
            Self::Sqlite(tx) => Query::of_sqlite(statement, On::Connection(&mut **tx)),
            Self::Postgres(tx) => Query::of_postgres(statement, On::Connection(tx.connection())),
        }
    }

    pub(crate) fn dialect(&self) -> Dialect {
        match self {
            Self::Sqlite(_) => Dialect::Sqlite,
            Self::Postgres(_) => Dialect::Postgres,
        }
    }

    /// Reads the database's clock.
    pub(crate) async fn now(&mut self) -> Result<DateTime<Utc>, Error> {
        let clock = match self {
            Self::Sqlite(_) => "SELECT strftime('%Y-%m-%dT%H:%M:%f+00:00', 'now')",
            Self::Postgres(_) => "SELECT clock_timestamp()",
        };
        Ok(self.query(clock).scalar().await?)
    }

    pub(crate) async fn commit(self) -> Result<(), Error> {
        match self {
            Self::Sqlite(tx) => tx.commit().await?,
            Self::Postgres(tx) => tx.commit().await?,
        }
        Ok(())
    }
}

fn newest(migrations: &Migrator) -> i64 {
    migrations.iter().map(|migration| migration.version).max().unwrap_or_default()
}

/// Checks that a later retry may succeed: the database was unreachable, busy or out of resources.
pub(crate) fn is_unavailable(error: &sqlx::Error) -> bool {
    let Some(refused) = error.as_database_error() else {
        // A connection that ends while it begins is an error of the protocol, or of TLS.
        return matches!(
            error,
            sqlx::Error::Io(_)
                | sqlx::Error::Protocol(_)
                | sqlx::Error::Tls(_)
                | sqlx::Error::PoolTimedOut
                | sqlx::Error::PoolClosed
                | sqlx::Error::WorkerCrashed
        );
    };
    match refused.try_downcast_ref::<PgDatabaseError>() {
        Some(refused) => postgres::is_passing(refused),
        None => refused.code().is_some_and(|code| sqlite::is_passing(&code)),
    }
}

/// Checks that the write violated a uniqueness constraint.
pub(crate) fn is_duplicate(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|refused| refused.is_unique_violation())
}
