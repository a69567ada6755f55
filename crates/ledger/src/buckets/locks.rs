//! Locks of buckets with an expiry. The locks only save double work; correctness never depends on a lock.

use std::collections::BTreeSet;

use seatkeeper_core::{BUCKETS, Bucket, Span};
use uuid::Uuid;

use super::epochs::{bucket_of, stored};
use crate::chunks::{ChunkedStatement, sized_texts};
use crate::times::later;
use crate::{Error, Ledger};

static LOCK: ChunkedStatement =
    ChunkedStatement::new(|| sized_texts(include_str!("../../sql/lock_buckets.sql"), 4, BUCKETS as usize));

impl Ledger {
    /// Takes the locks of the buckets that are free, expired or already held by `node`. Each lock lasts
    /// `time` from the present of the database's clock. Returns the locked buckets in order.
    pub async fn lock_buckets(
        &self,
        node: Uuid,
        buckets: &[Bucket],
        time: Span,
    ) -> Result<Vec<Bucket>, Error> {
        let mut tx = self.write().await?;
        let now = tx.now().await?;
        let mut taken = Vec::new();
        for (statement, chunk) in LOCK.cut(tx.dialect(), &in_order(buckets)) {
            let query = chunk.iter().fold(tx.query(statement), |query, bucket| {
                query.bind(stored(*bucket)).bind(node).bind(now).bind(later(now, time))
            });
            for number in query.scalars::<i64>().await? {
                taken.push(bucket_of(number)?);
            }
        }
        tx.commit().await?;
        taken.sort_unstable();
        Ok(taken)
    }

    /// Releases the locks of `buckets` held by `node`.
    pub async fn unlock_buckets(&self, node: Uuid, buckets: &[Bucket]) -> Result<(), Error> {
        // Releasing locks rows in the same order as taking, to prevent a deadlock.
        self.lock_buckets(node, buckets, Span::ZERO).await.map(|_| ())
    }
}

/// Sorts the buckets, so that concurrent callers lock rows in one order and cannot deadlock.
fn in_order(buckets: &[Bucket]) -> Vec<Bucket> {
    buckets.iter().copied().collect::<BTreeSet<_>>().into_iter().collect()
}
