//! The SQL differences between SQLite and PostgreSQL.

/// The SQL dialect of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

/// The start of the locking clause, the last line of a statement that locks the rows it reads.
const ROW_LOCK: &str = "\nFOR ";

impl Dialect {
    /// Returns a statement in the database's dialect. SQLite has no row locks and gets the statement without
    /// its locking clause. A write transaction in SQLite excludes every concurrent writer anyway.
    pub(super) fn text(self, statement: &'static str) -> &'static str {
        match self {
            Self::Sqlite => statement.rsplit_once(ROW_LOCK).map_or(statement, |(unlocked, _)| unlocked),
            Self::Postgres => statement,
        }
    }

    /// Returns `rows` groups of `columns` placeholders. SQLite gets bare `?` placeholders, because SQLite
    /// searches a list for numbered placeholders at every bind.
    pub(crate) fn placeholder_groups(self, rows: usize, columns: usize) -> String {
        let group = |row: usize| {
            let place = |column: usize| match self {
                Self::Sqlite => "?".to_owned(),
                Self::Postgres => format!("${}", row * columns + column + 1),
            };
            format!("({})", (0..columns).map(place).collect::<Vec<_>>().join(", "))
        };
        (0..rows).map(group).collect::<Vec<_>>().join(", ")
    }
}
