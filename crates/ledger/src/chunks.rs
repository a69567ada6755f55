//! Multi-row statements with prepared texts for 1, 2, 4, … rows.
//!
//! A statement per power of two keeps the number of prepared statements small for batches of any size.

use std::iter::repeat;
use std::sync::LazyLock;

use crate::database::Dialect;

/// The text of a statement for each power of two of rows, prepared once per size.
pub(crate) struct ChunkedStatement {
    texts: LazyLock<SizedTexts, fn() -> SizedTexts>,
}

/// The texts for each database, in ascending size.
pub(crate) struct SizedTexts {
    sqlite: Vec<String>,
    postgres: Vec<String>,
}

impl ChunkedStatement {
    /// Creates the statement. `texts` calls [`sized_texts`] on first use.
    pub(crate) const fn new(texts: fn() -> SizedTexts) -> Self {
        Self { texts: LazyLock::new(texts) }
    }

    /// Splits `items` into chunks of a power of two, each with the text for its size.
    pub(crate) fn cut<'a, T>(
        &'static self,
        dialect: Dialect,
        mut items: &'a [T],
    ) -> impl Iterator<Item = (&'static str, &'a [T])> {
        let texts = self.texts(dialect);
        std::iter::from_fn(move || {
            let size = (items.len().checked_ilog2()? as usize).min(texts.len() - 1);
            let (chunk, rest) = items.split_at(1 << size);
            items = rest;
            Some((texts[size].as_str(), chunk))
        })
    }

    /// Splits `items` into fewer chunks by padding the last chunk with copies of its last item. Only for
    /// statements accepting duplicate items.
    pub(crate) fn cut_filled<'a, T>(
        &'static self,
        dialect: Dialect,
        mut items: &'a [T],
    ) -> impl Iterator<Item = (&'static str, impl Iterator<Item = &'a T>)> {
        let texts = self.texts(dialect);
        std::iter::from_fn(move || {
            let fitting = items.len().checked_ilog2()? as usize;
            let filled = if is_filled(dialect, items.len(), 2 << fitting) { fitting + 1 } else { fitting };
            let size = filled.min(texts.len() - 1);
            let (chunk, rest) = items.split_at(items.len().min(1 << size));
            items = rest;
            Some((texts[size].as_str(), chunk.iter().chain(repeat(chunk.last()?)).take(1 << size)))
        })
    }

    fn texts(&'static self, dialect: Dialect) -> &'static [String] {
        match dialect {
            Dialect::Sqlite => &self.texts.sqlite,
            Dialect::Postgres => &self.texts.postgres,
        }
    }
}

/// Checks that padding a chunk costs less than an extra statement. PostgreSQL is a separate process, so a
/// statement costs more than over SQLite.
fn is_filled(dialect: Dialect, items: usize, rows: usize) -> bool {
    let rows_for_an_asking = match dialect {
        Dialect::Sqlite => 4,
        Dialect::Postgres => 16,
    };
    !items.is_power_of_two() && rows - items <= rows_for_an_asking.max(rows / 4)
}

/// Builds the texts of a statement for 1, 2, 4, … up to `rows_max` rows. Placeholder groups replace the last
/// `/* rows */`, because an earlier one is in the statement's comment.
pub(crate) fn sized_texts(statement: &str, columns: usize, rows_max: usize) -> SizedTexts {
    let (before, after) = statement.rsplit_once("/* rows */").unwrap_or((statement, ""));
    let texts = |dialect: Dialect| {
        let text =
            |size: u32| format!("{before}{}{after}", dialect.placeholder_groups(1_usize << size, columns));
        (0..=rows_max.ilog2()).map(text).collect()
    };
    SizedTexts { sqlite: texts(Dialect::Sqlite), postgres: texts(Dialect::Postgres) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed expectation fails the test")]

    use super::*;

    static NUMBERS: ChunkedStatement = ChunkedStatement::new(|| sized_texts("VALUES /* rows */", 1, 64));

    fn sizes(items: usize) -> Vec<usize> {
        let items: Vec<_> = (0..items).collect();
        let chunks: Vec<Vec<usize>> = NUMBERS
            .cut_filled(Dialect::Postgres, &items)
            .map(|(text, rows)| {
                let rows: Vec<_> = rows.copied().collect();
                assert_eq!(text.matches('$').count(), rows.len());
                rows
            })
            .collect();
        let mut given = chunks.concat();
        given.dedup();
        assert_eq!(given, items, "each item is given, in order");
        chunks.iter().map(Vec::len).collect()
    }

    #[test]
    fn few_statements_take_any_number_of_items() {
        assert_eq!(sizes(0), [0; 0]);
        assert_eq!(sizes(1), [1]);
        assert_eq!(sizes(5), [8]);
        assert_eq!(sizes(33), [32, 1]);
        assert_eq!(sizes(47), [32, 16]);
        assert_eq!(sizes(48), [64]);
        assert_eq!(sizes(64), [64]);
        assert_eq!(sizes(65), [64, 1]);
        assert_eq!(sizes(127), [64, 64]);
        assert_eq!(sizes(130), [64, 64, 2]);
    }
}
