//! A statement for either database: text, bound values and connection.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use futures_util::future::{BoxFuture, TryFutureExt as _};
use futures_util::stream::{self, BoxStream, Stream, StreamExt as _, TryStreamExt as _};
use sea_query::{PostgresQueryBuilder, SelectStatement, SqliteQueryBuilder};
use sea_query_sqlx::SqlxBinder as _;
use seatkeeper_core::PoolId;
use seatkeeper_postgres::Connections;
use sqlx::pool::PoolConnection;
use sqlx::{AssertSqlSafe, Database, IntoArguments, PgConnection, Postgres, Sqlite, SqlitePool};

use super::postgres::{LONG_STATEMENT_TIMEOUT, STATEMENT_TIMEOUT, within, within_limit};
use super::value::Readable;
use super::{Dialect, Row, Value};

/// A statement with its bound values and the connection to run on.
pub(crate) enum Query<'c> {
    Sqlite(Text<Sqlite>, On<'c, Sqlite>),
    Postgres(Text<Postgres>, On<'c, Postgres>),
}

/// A statement's text with the bound values.
type Text<DB> = sqlx::query::Query<'static, DB, <DB as Database>::Arguments>;

/// A database whose connections come from a pool.
pub(crate) trait Pooled: Database {
    /// The pool of connections.
    type Pool: Sync;

    /// Takes a connection from the pool for exclusive use.
    fn acquire(pool: &Self::Pool) -> impl Future<Output = Result<PoolConnection<Self>, sqlx::Error>> + Send;
}

impl Pooled for Sqlite {
    type Pool = SqlitePool;

    async fn acquire(pool: &SqlitePool) -> Result<PoolConnection<Self>, sqlx::Error> {
        pool.acquire().await
    }
}

impl Pooled for Postgres {
    type Pool = Connections;

    async fn acquire(connections: &Connections) -> Result<PoolConnection<Self>, sqlx::Error> {
        connections.acquire().await
    }
}

/// The connection for a statement.
pub(crate) enum On<'c, DB: Pooled> {
    /// An exclusive connection from the pool.
    Pool(&'c DB::Pool),
    /// A connection of the caller, who closes the connection after an error of the connection: a transaction does.
    Connection(&'c mut DB::Connection),
}

impl<'c> Query<'c> {
    pub(super) fn of_sqlite(statement: &'static str, on: On<'c, Sqlite>) -> Self {
        Self::Sqlite(sqlx::query(Dialect::Sqlite.text(statement)), on)
    }

    pub(super) fn of_postgres(statement: &'static str, on: On<'c, Postgres>) -> Self {
        Self::Postgres(sqlx::query(Dialect::Postgres.text(statement)), on)
    }

    /// Builds a statement with values of PostgreSQL's own types, such as arrays. The caller closes the connection after
    /// an error of the connection.
    pub(crate) fn on_postgres(text: Text<Postgres>, connection: &'c mut PgConnection) -> Self {
        Self::Postgres(text, On::Connection(connection))
    }

    pub(super) fn select_of_sqlite(statement: &SelectStatement, on: On<'c, Sqlite>) -> Self {
        let (text, values) = statement.build_sqlx(SqliteQueryBuilder);
        let arguments = IntoArguments::<Sqlite>::into_arguments(values);
        Self::Sqlite(sqlx::query_with(AssertSqlSafe(text), arguments), on)
    }

    pub(super) fn select_of_postgres(statement: &SelectStatement, on: On<'c, Postgres>) -> Self {
        let (text, values) = statement.build_sqlx(PostgresQueryBuilder);
        let arguments = IntoArguments::<Postgres>::into_arguments(values);
        Self::Postgres(sqlx::query_with(AssertSqlSafe(text), arguments), on)
    }

    /// Binds the next value.
    pub(crate) fn bind<'v>(self, value: impl Value<'v>) -> Self {
        match self {
            Self::Sqlite(text, on) => Self::Sqlite(text.bind(value), on),
            Self::Postgres(text, on) => Self::Postgres(text.bind(value), on),
        }
    }

    /// Binds the tenant, the kind and the name of a pool.
    pub(crate) fn bind_pool(self, pool: &PoolId) -> Self {
        self.bind(pool.tenant.as_str()).bind(pool.kind.as_str()).bind(&*pool.name)
    }

    /// Runs the statement and returns the number of affected rows.
    pub(crate) fn execute(self) -> BoxFuture<'c, Result<u64, sqlx::Error>> {
        Box::pin(async move {
            Ok(match self {
                Self::Sqlite(text, on) => text.execute(&mut *on.connection().await?).await?.rows_affected(),
                Self::Postgres(text, on) => {
                    let mut connection = on.connection().await?;
                    let done = within(text.execute(&mut *connection)).await;
                    connection.settled(done)?.rows_affected()
                }
            })
        })
    }

    /// Returns the first row, if any.
    pub(crate) fn fetch_optional(self) -> BoxFuture<'c, Result<Option<Row>, sqlx::Error>> {
        Box::pin(async move {
            Ok(match self {
                Self::Sqlite(text, on) => {
                    text.fetch_optional(&mut *on.connection().await?).await?.map(Row::Sqlite)
                }
                Self::Postgres(text, on) => {
                    let mut connection = on.connection().await?;
                    let row = within(text.fetch_optional(&mut *connection)).await;
                    connection.settled(row)?.map(Row::Postgres)
                }
            })
        })
    }

    /// Returns the first row of a statement that always has a row.
    pub(crate) async fn fetch_one(self) -> Result<Row, sqlx::Error> {
        self.fetch_optional().await?.ok_or(sqlx::Error::RowNotFound)
    }

    /// Returns all rows.
    pub(crate) fn fetch_all(self) -> BoxFuture<'c, Result<Vec<Row>, sqlx::Error>> {
        Box::pin(async move {
            Ok(match self {
                Self::Sqlite(text, on) => {
                    let rows = text.fetch_all(&mut *on.connection().await?).await?;
                    rows.into_iter().map(Row::Sqlite).collect()
                }
                Self::Postgres(text, on) => {
                    let mut connection = on.connection().await?;
                    let rows = within(text.fetch_all(&mut *connection)).await;
                    connection.settled(rows)?.into_iter().map(Row::Postgres).collect()
                }
            })
        })
    }

    /// Streams the rows. Each row must come within the statement timeout.
    pub(crate) fn fetch(self) -> BoxStream<'c, Result<Row, sqlx::Error>> {
        self.fetch_first_within(STATEMENT_TIMEOUT)
    }

    /// Streams the rows of a statement that may read and sort millions of rows before the first row. The first row must
    /// come within [`LONG_STATEMENT_TIMEOUT`], and each further row within the statement timeout.
    pub(crate) fn fetch_long(self) -> BoxStream<'c, Result<Row, sqlx::Error>> {
        self.fetch_first_within(LONG_STATEMENT_TIMEOUT)
    }

    fn fetch_first_within(self, limit: Duration) -> BoxStream<'c, Result<Row, sqlx::Error>> {
        match self {
            Self::Sqlite(text, On::Pool(pool)) => text.fetch(pool).map_ok(Row::Sqlite).boxed(),
            Self::Sqlite(text, On::Connection(tx)) => text.fetch(tx).map_ok(Row::Sqlite).boxed(),
            Self::Postgres(text, On::Pool(connections)) => {
                let rows = connections.pool().map_ok(|pool| text.fetch(pool)).try_flatten_stream().boxed();
                in_time(rows, limit).map_ok(Row::Postgres).boxed()
            }
            Self::Postgres(text, On::Connection(tx)) => {
                in_time(text.fetch(tx), limit).map_ok(Row::Postgres).boxed()
            }
        }
    }

    /// Returns the first column of the first row, if any.
    pub(crate) async fn scalar_optional<T: for<'r> Readable<'r>>(self) -> Result<Option<T>, sqlx::Error> {
        self.fetch_optional().await?.map(|row| row.first()).transpose()
    }

    /// Returns the first column of a statement that always has a row.
    pub(crate) async fn scalar<T: for<'r> Readable<'r>>(self) -> Result<T, sqlx::Error> {
        self.fetch_one().await?.first()
    }

    /// Returns the first column of a statement that always has a row and may read millions of rows. The row must come within
    /// [`LONG_STATEMENT_TIMEOUT`].
    pub(crate) async fn scalar_long<T: for<'r> Readable<'r>>(self) -> Result<T, sqlx::Error> {
        let row = self.fetch_long().try_next().await?;
        row.ok_or(sqlx::Error::RowNotFound)?.first()
    }

    /// Returns the first column of all rows.
    pub(crate) async fn scalars<T: for<'r> Readable<'r>>(self) -> Result<Vec<T>, sqlx::Error> {
        self.fetch_all().await?.iter().map(Row::first).collect()
    }
}

/// Limits the time of each row of a stream: the first row must come within `limit`, and each further row within the
/// statement timeout.
fn in_time<'c, R: Send + 'c>(
    rows: BoxStream<'c, Result<R, sqlx::Error>>,
    limit: Duration,
) -> impl Stream<Item = Result<R, sqlx::Error>> + Send + 'c {
    stream::try_unfold((rows, limit), async |(mut rows, limit)| {
        let row = within_limit(limit, rows.try_next()).await?;
        Ok::<_, sqlx::Error>(row.map(|row| (row, (rows, STATEMENT_TIMEOUT))))
    })
}

/// The connection of a running statement.
enum Connection<'c, DB: Database> {
    Pooled(PoolConnection<DB>),
    OfCaller(&'c mut DB::Connection),
}

impl<'c, DB: Pooled> On<'c, DB> {
    async fn connection(self) -> Result<Connection<'c, DB>, sqlx::Error> {
        match self {
            Self::Pool(pool) => DB::acquire(pool).await.map(Connection::Pooled),
            Self::Connection(tx) => Ok(Connection::OfCaller(tx)),
        }
    }
}

impl<DB: Database> Connection<'_, DB> {
    /// Passes a statement's result on. After an error of the connection the pooled connection is closed, because
    /// its state is unknown.
    fn settled<T>(&mut self, done: Result<T, sqlx::Error>) -> Result<T, sqlx::Error> {
        if let (Self::Pooled(connection), Err(sqlx::Error::Io(_) | sqlx::Error::Protocol(_))) = (self, &done)
        {
            connection.close_on_drop();
        }
        done
    }
}

impl<DB: Database> Deref for Connection<'_, DB> {
    type Target = DB::Connection;
    fn deref(&self) -> &DB::Connection {
        match self {
            Self::Pooled(connection) => connection,
            Self::OfCaller(connection) => connection,
        }
    }
}

impl<DB: Database> DerefMut for Connection<'_, DB> {
    fn deref_mut(&mut self) -> &mut DB::Connection {
        match self {
            Self::Pooled(connection) => connection,
            Self::OfCaller(connection) => connection,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_first_row_may_take_as_long_as_its_own_limit() {
        let row = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Ok(7)
        };
        let rows = in_time(stream::once(row).boxed(), Duration::from_secs(600));
        assert_eq!(rows.try_collect::<Vec<i32>>().await.unwrap(), [7]);
        let never = stream::pending::<Result<i32, sqlx::Error>>().boxed();
        let late = in_time(never, Duration::from_millis(20)).try_collect::<Vec<_>>().await.unwrap_err();
        assert!(matches!(late, sqlx::Error::Io(_)), "{late:?}");
    }
}
