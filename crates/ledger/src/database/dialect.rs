//! The few words in which the statements of the two databases differ.

/// Which database's words a statement is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

/// What begins the last line of a statement that locks the rows it reads.
const ROW_LOCK: &str = "\nFOR ";

impl Dialect {
    /// A statement as this database takes it. SQLite has no locks of rows, and needs none: a transaction
    /// that may write is the only one.
    pub(super) fn text(self, statement: &'static str) -> &'static str {
        match self {
            Self::Sqlite => statement.rsplit_once(ROW_LOCK).map_or(statement, |(unlocked, _)| unlocked),
            Self::Postgres => statement,
        }
    }

    /// `rows` groups of `columns` placeholders. For SQLite bare ones, for it looks numbered ones up one by
    /// one, in a list, at every bind.
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
