//! The few words in which the statements of the two databases differ.

/// Which database's words a statement is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

/// What locks the rows that a statement reads until its transaction ends.
const ROW_LOCK: &str = "FOR UPDATE";

impl Dialect {
    /// A statement as this database takes it. SQLite has no locks of rows, and needs none: a transaction
    /// that may write is the only one.
    pub(super) fn text(self, statement: &'static str) -> &'static str {
        let end = statement.trim_end();
        match self {
            Self::Sqlite => end.strip_suffix(ROW_LOCK).unwrap_or(end),
            Self::Postgres => end,
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
