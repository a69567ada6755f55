//! Appends records to the audit log.

use std::borrow::Borrow;

use super::Entry;
use crate::Error;
use crate::chunks::{ChunkedStatement, sized_texts};
use crate::database::Tx;

/// Rows in one statement. Above some hundred rows, the cost of a row stays constant.
const ROWS_MAX: usize = 256;

static APPEND: ChunkedStatement = ChunkedStatement::new(|| {
    let text =
        include_str!("../../sql/append_audit.sql").replace("/* columns */", &Entry::COLUMNS.join(", "));
    sized_texts(&text, Entry::COLUMNS.len(), ROWS_MAX)
});

/// Returns the id of the newest record. Records appended later in the transaction have greater ids.
pub(crate) async fn head(tx: &mut Tx) -> Result<i64, Error> {
    Ok(tx.query(include_str!("../../sql/audit_head.sql")).scalar().await?)
}

/// Appends records and returns the number of appended records. A record whose number is taken is skipped.
pub(crate) async fn append<'e>(tx: &mut Tx, entries: &[impl Borrow<Entry<'e>>]) -> Result<usize, Error> {
    let mut appended = 0;
    for (statement, chunk) in APPEND.cut_filled(tx.dialect(), entries) {
        let query = chunk.fold(tx.query(statement), |query, entry| entry.borrow().bind(query));
        appended += query.execute().await? as usize;
    }
    Ok(appended)
}
