//! The reading that keeps a node's lease: the node writes its row, and reads all nodes and all buckets.

use seatkeeper_host_clock::HostInstant;

use super::BucketRow;
use super::epochs::read_buckets;
use crate::database::refuse_in_sole_use;
use crate::nodes::{KnownNode, NodeRow, NodesSeen, see};
use crate::{Error, Ledger};

/// The nodes and the buckets, read by a live node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Every remembered node by id, including the reading node.
    pub nodes: Vec<KnownNode>,
    /// An instant before the buckets were read.
    pub asked: HostInstant,
    /// All buckets in order; `None` if the node was not known before the reading.
    pub buckets: Option<Vec<BucketRow>>,
}

impl Ledger {
    /// Writes the row of a live node and reads the buckets, in one transaction.
    ///
    /// `buckets` is `None` unless an earlier transaction has committed the node's row. A node raising an
    /// epoch at the same moment does not see an uncommitted row, and would not wait for the reading node's
    /// lease. After `None`, the caller reads again.
    ///
    /// `Err(InUse)` for a node that is not known while a process uses the ledger alone.
    pub async fn node_reads(&self, node: &NodeRow) -> Result<Reading, Error> {
        let mut tx = self.write().await?;
        let NodesSeen { nodes, was_known } = see(&mut tx, node).await?;
        if !was_known {
            refuse_in_sole_use(&mut tx).await?;
        }
        let asked = HostInstant::now();
        let buckets = if was_known { Some(read_buckets(&mut tx).await?) } else { None };
        tx.commit().await?;
        Ok(Reading { nodes, asked, buckets })
    }
}
