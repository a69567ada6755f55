//! Locks of buckets with an expiry. The locks only save double work; correctness never depends on a lock.

use std::collections::BTreeMap;

use seatkeeper_core::{BUCKETS, Bucket, Span};
use uuid::Uuid;

use super::epochs::{bucket_of, stored};
use crate::chunks::{ChunkedStatement, sized_texts};
use crate::database::Tx;
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
        let locks = buckets.iter().map(|bucket| (*bucket, node)).collect();
        let taken = lock(&mut tx, &locks, time).await?;
        tx.commit().await?;
        Ok(taken)
    }

    /// Releases the locks of `buckets` held by `node`.
    pub async fn unlock_buckets(&self, node: Uuid, buckets: &[Bucket]) -> Result<(), Error> {
        // Releasing locks rows in the same order as taking, to prevent a deadlock.
        self.lock_buckets(node, buckets, Span::ZERO).await.map(|_| ())
    }
}

/// Releases every lock of nodes that are gone, so that no other node waits for the locks to expire. A rebuild by a node that
/// was only slow may go on: the next raise refuses every later step of that rebuild, as after an expired lock.
pub(super) async fn unlock_all(tx: &mut Tx, nodes: &[Uuid]) -> Result<(), Error> {
    let now = tx.now().await?;
    let mut locked = BTreeMap::new();
    for node in nodes {
        let read = tx.query(include_str!("../../sql/locked_buckets.sql")).bind(*node).bind(now);
        for number in read.scalars::<i64>().await? {
            locked.insert(bucket_of(number)?, *node);
        }
    }
    lock(tx, &locked, Span::ZERO).await.map(drop)
}

/// Takes the locks of buckets like [`Ledger::lock_buckets`], each for its node. The map keeps the order of buckets, so that
/// concurrent callers lock rows in one order and cannot deadlock.
async fn lock(tx: &mut Tx, locks: &BTreeMap<Bucket, Uuid>, time: Span) -> Result<Vec<Bucket>, Error> {
    let now = tx.now().await?;
    let locks: Vec<_> = locks.iter().collect();
    let mut taken = Vec::new();
    for (statement, chunk) in LOCK.cut(tx.dialect(), &locks) {
        let query = chunk.iter().fold(tx.query(statement), |query, (bucket, node)| {
            query.bind(stored(**bucket)).bind(**node).bind(now).bind(later(now, time))
        });
        for number in query.scalars::<i64>().await? {
            taken.push(bucket_of(number)?);
        }
    }
    taken.sort_unstable();
    Ok(taken)
}
