//! Heartbeats: not events, and noted from time to time.

use seatkeeper_core::{RegistryTime, SessionId};

use crate::chunks::{ChunkedStatement, sized_texts};
use crate::{Error, Ledger, buckets, times};

/// Rows in one statement.
const ROWS_MAX: usize = 1_024;
/// Heartbeats in one transaction: an admission that waits for its own does not wait long.
const HEARTBEATS_PER_COMMIT_MAX: usize = 4_096;

static FLUSH: ChunkedStatement =
    ChunkedStatement::new(|| sized_texts(include_str!("../sql/flush_heartbeats.sql"), 2, ROWS_MAX));

impl Ledger {
    /// Notes the latest heartbeats of live sessions. An older one never replaces a newer, and those of
    /// sessions that have ended are left out. If it fails, some may have been noted.
    pub async fn flush_heartbeats(&self, latest: &[(SessionId, RegistryTime)]) -> Result<(), Error> {
        // Bucket by bucket, so that a transaction is in the way of few others.
        let mut latest = latest.to_vec();
        latest.sort_unstable_by_key(|(id, _)| (id.bucket(), *id));
        for part in latest.chunks(HEARTBEATS_PER_COMMIT_MAX) {
            let mut tx = self.write().await?;
            buckets::hold(&mut tx, part.iter().map(|(id, _)| id.bucket())).await?;
            for (statement, chunk) in FLUSH.cut_filled(tx.dialect(), part) {
                let query = chunk.fold(tx.query(statement), |query, (id, at)| {
                    query.bind(id.as_uuid()).bind(times::stored(*at))
                });
                query.execute().await?;
            }
            tx.commit().await?;
        }
        Ok(())
    }
}
