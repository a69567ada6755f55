//! Locks of buckets, with a limit in time. They save double work; nothing relies on them.

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
    /// Takes the locks of those buckets that are free, over, or this node's already, for so long from now by
    /// the database's clock; returns which those are, in order.
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

    /// Gives the locks of these buckets back that are this node's: they are over now.
    pub async fn unlock_buckets(&self, node: Uuid, buckets: &[Bucket]) -> Result<(), Error> {
        // As whoever takes them does it, so that neither waits for the other for ever.
        self.lock_buckets(node, buckets, Span::ZERO).await.map(|_| ())
    }
}

/// So that of two who want the same ones none waits for ever.
fn in_order(buckets: &[Bucket]) -> Vec<Bucket> {
    buckets.iter().copied().collect::<BTreeSet<_>>().into_iter().collect()
}
