//! Batched flushes of heartbeats. Heartbeats are not events and have no audit record.

use seatkeeper_core::LatestHeartbeat;

use crate::chunks::{ChunkedStatement, sized_texts};
use crate::row::stored_whole;
use crate::{Error, Ledger, buckets, times};

/// Rows in one statement.
const ROWS_MAX: usize = 1_024;
/// Heartbeats in one transaction. The limit keeps short the wait of an admission behind the transaction.
const HEARTBEATS_PER_COMMIT_MAX: usize = 4_096;

static FLUSH: ChunkedStatement =
    ChunkedStatement::new(|| sized_texts(include_str!("../sql/flush_heartbeats.sql"), 3, ROWS_MAX));

impl Ledger {
    /// Records the latest heartbeats of live sessions, with the TTLs of the answers. An older heartbeat never
    /// replaces a newer heartbeat, and ended sessions are skipped. After an error, a part of the heartbeats may
    /// be recorded.
    pub async fn flush_heartbeats(&self, latest: &[LatestHeartbeat]) -> Result<(), Error> {
        // Sorting by bucket lets a transaction block few other transactions.
        let mut latest = latest.to_vec();
        latest.sort_unstable_by_key(|heartbeat| (heartbeat.session.bucket(), heartbeat.session));
        for part in latest.chunks(HEARTBEATS_PER_COMMIT_MAX) {
            let mut tx = self.write().await?;
            buckets::hold(&mut tx, part.iter().map(|heartbeat| heartbeat.session.bucket())).await?;
            for (statement, chunk) in FLUSH.cut_filled(tx.dialect(), part) {
                let query = chunk.fold(tx.query(statement), |query, LatestHeartbeat { session, at, ttl }| {
                    let query = query.bind(session.as_uuid()).bind(times::stored(*at));
                    query.bind(stored_whole(ttl.as_millis()))
                });
                query.execute().await?;
            }
            tx.commit().await?;
        }
        Ok(())
    }
}
