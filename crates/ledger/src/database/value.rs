//! Values and rows supported by both databases.

use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{Decode, Encode, Postgres, Row as _, Sqlite, Type};

/// A value to bind to a statement.
pub(crate) trait Value<'v>:
    Encode<'v, Sqlite> + Type<Sqlite> + Encode<'v, Postgres> + Type<Postgres>
{
}

impl<'v, T> Value<'v> for T where T: Encode<'v, Sqlite> + Type<Sqlite> + Encode<'v, Postgres> + Type<Postgres> {}

/// A value to read from a row.
pub(crate) trait Readable<'r>:
    Decode<'r, Sqlite> + Type<Sqlite> + Decode<'r, Postgres> + Type<Postgres>
{
}

impl<'r, T> Readable<'r> for T where
    T: Decode<'r, Sqlite> + Type<Sqlite> + Decode<'r, Postgres> + Type<Postgres>
{
}

/// A row returned by a statement.
pub(crate) enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

impl Row {
    /// Returns the value of a column.
    pub(crate) fn get<'r, T: Readable<'r>>(&'r self, column: &str) -> Result<T, sqlx::Error> {
        match self {
            Self::Sqlite(row) => row.try_get(column),
            Self::Postgres(row) => row.try_get(column),
        }
    }

    /// Returns the value of the first column.
    pub(super) fn first<'r, T: Readable<'r>>(&'r self) -> Result<T, sqlx::Error> {
        match self {
            Self::Sqlite(row) => row.try_get(0),
            Self::Postgres(row) => row.try_get(0),
        }
    }
}
