//! Appends records to the audit log.

use super::Entry;
use crate::Error;
use crate::chunks::{ChunkedStatement, sized_texts};
use crate::database::{Query, Tx};

/// The number of columns in `append_audit.sql`.
const COLUMNS: usize = 29;
/// Rows in one statement. Above some hundred rows, the cost of a row stays constant.
const ROWS_MAX: usize = 256;

static APPEND: ChunkedStatement =
    ChunkedStatement::new(|| sized_texts(include_str!("../../sql/append_audit.sql"), COLUMNS, ROWS_MAX));

/// Returns the id of the newest record. Records appended later in the transaction have greater ids.
pub(crate) async fn head(tx: &mut Tx) -> Result<i64, Error> {
    Ok(tx.query(include_str!("../../sql/audit_head.sql")).scalar().await?)
}

/// Appends records and returns the number of appended records. A record whose number is taken is skipped.
pub(crate) async fn append(tx: &mut Tx, entries: &[Entry<'_>]) -> Result<usize, Error> {
    let mut appended = 0;
    for (statement, chunk) in APPEND.cut_filled(tx.dialect(), entries) {
        let query = chunk.fold(tx.query(statement), bind);
        appended += query.execute().await? as usize;
    }
    Ok(appended)
}

fn bind<'c>(query: Query<'c>, entry: &Entry<'_>) -> Query<'c> {
    query
        .bind(entry.at())
        .bind(entry.pool.tenant.as_str())
        .bind(entry.pool.kind.as_str())
        .bind(&*entry.pool.name)
        .bind(entry.stream.as_str())
        .bind(entry.seq())
        .bind(entry.epoch())
        .bind(entry.action.as_str())
        .bind(entry.session_id())
        .bind(entry.holder())
        .bind(entry.actor())
        .bind(entry.request())
        .bind(entry.reason)
        .bind(entry.limit())
        .bind(entry.version())
        .bind(entry.live())
        .bind(entry.count())
        .bind(entry.folded)
        .bind(entry.user())
        .bind(entry.tier())
        .bind(entry.ip())
        .bind(entry.user_agent())
        .bind(entry.metadata())
        .bind(entry.device_type())
        .bind(entry.device_name())
        .bind(entry.ttl())
        .bind(entry.last_heartbeat())
        .bind(entry.expires())
        .bind(entry.detail.as_deref())
}
