//! Nodes that leave or are forgotten: no row, and no lock of a bucket.

use uuid::Uuid;

use super::locks::unlock_all;
use crate::nodes::{KnownNode, forget, forget_silent};
use crate::{Error, Ledger};

impl Ledger {
    /// Forgets a node that shuts down cleanly, and releases its locks of buckets.
    pub async fn node_left(&self, id: Uuid) -> Result<(), Error> {
        let mut tx = self.write().await?;
        forget(&mut tx, id).await?;
        unlock_all(&mut tx, &[id]).await?;
        tx.commit().await
    }

    /// Forgets nodes that certainly have no lease, and releases their locks of buckets. A node that was seen after its
    /// `seen_at` stays. Returns the number of forgotten nodes.
    pub async fn forget_nodes(&self, nodes: &[KnownNode]) -> Result<u64, Error> {
        let mut tx = self.write().await?;
        let mut forgotten = Vec::new();
        for node in nodes {
            if forget_silent(&mut tx, node).await? {
                forgotten.push(node.row.id);
            }
        }
        unlock_all(&mut tx, &forgotten).await?;
        tx.commit().await?;
        Ok(forgotten.len() as u64)
    }
}
