//! Statements of many rows, in few sizes.

use std::sync::LazyLock;

use crate::database::Dialect;

/// One statement's text for each size of 1, 2, 4, … rows, so that each is prepared once.
pub(crate) struct ChunkedStatement {
    texts: LazyLock<SizedTexts, fn() -> SizedTexts>,
}

/// The texts for each of the databases, the smallest first.
pub(crate) struct SizedTexts {
    sqlite: Vec<String>,
    postgres: Vec<String>,
}

impl ChunkedStatement {
    /// Texts made by [`sized_texts`].
    pub(crate) const fn new(texts: fn() -> SizedTexts) -> Self {
        Self { texts: LazyLock::new(texts) }
    }

    /// Cuts `items` into chunks that the statement takes, each with its text.
    pub(crate) fn cut<'a, T>(
        &'static self,
        dialect: Dialect,
        mut items: &'a [T],
    ) -> impl Iterator<Item = (&'static str, &'a [T])> {
        let texts = match dialect {
            Dialect::Sqlite => &self.texts.sqlite,
            Dialect::Postgres => &self.texts.postgres,
        };
        std::iter::from_fn(move || {
            let largest = texts.len() - 1;
            let size = (items.len().checked_ilog2()? as usize).min(largest);
            let (chunk, rest) = items.split_at(1 << size);
            items = rest;
            Some((texts[size].as_str(), chunk))
        })
    }
}

/// The statement for 1, 2, 4, … up to `rows_max` rows: `/* rows */` gives way to as many groups.
pub(crate) fn sized_texts(statement: &str, columns: usize, rows_max: usize) -> SizedTexts {
    let texts = |dialect: Dialect| {
        let text = |size: u32| {
            statement.replace("/* rows */", &dialect.placeholder_groups(1_usize << size, columns))
        };
        (0..=rows_max.ilog2()).map(text).collect()
    };
    SizedTexts { sqlite: texts(Dialect::Sqlite), postgres: texts(Dialect::Postgres) }
}
