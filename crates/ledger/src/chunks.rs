//! Statements of many rows, in few sizes.

use std::sync::LazyLock;

use crate::sqlite;

/// One statement's text for each size of 1, 2, 4, … rows, so that each is prepared once.
pub(crate) struct ChunkedStatement {
    texts: LazyLock<Vec<String>, fn() -> Vec<String>>,
}

impl ChunkedStatement {
    /// Texts made by [`sized_texts`].
    pub(crate) const fn new(texts: fn() -> Vec<String>) -> Self {
        Self { texts: LazyLock::new(texts) }
    }

    /// Cuts `items` into chunks that the statement takes, each with its text.
    pub(crate) fn cut<'a, T>(
        &'static self,
        mut items: &'a [T],
    ) -> impl Iterator<Item = (&'static str, &'a [T])> {
        std::iter::from_fn(move || {
            let largest = self.texts.len() - 1;
            let size = (items.len().checked_ilog2()? as usize).min(largest);
            let (chunk, rest) = items.split_at(1 << size);
            items = rest;
            Some((self.texts[size].as_str(), chunk))
        })
    }
}

/// The statement for 1, 2, 4, … up to `rows_max` rows: `/* rows */` gives way to as many groups.
pub(crate) fn sized_texts(statement: &str, columns: usize, rows_max: usize) -> Vec<String> {
    (0..=rows_max.ilog2())
        .map(|size| statement.replace("/* rows */", &sqlite::placeholder_groups(1 << size, columns)))
        .collect()
}
