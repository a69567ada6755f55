//! The serving nodes, and the buckets whose registry each node cannot reach.

use std::time::Instant;

use chrono::{DateTime, Utc};
use seatkeeper_core::{BucketSet, Span};
use uuid::Uuid;

use crate::buckets::BucketRow;
use crate::buckets::read_buckets;
use crate::database::{Dialect, Row, Tx};
use crate::row::{Fields, corrupt};
use crate::times::later;
use crate::{Error, Ledger};

/// A node is forgotten after being silent for one hour.
const REMEMBERED: Span = Span::from_secs(3_600);

/// A node seen within 60 s is known to every node raising an epoch. Only a known node may read the buckets.
const SURELY_KNOWN: Span = Span::from_secs(60);

/// The row written by a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    /// The id of one run of the node's process.
    pub id: Uuid,
    /// The node's name for people.
    pub name: String,
    /// The buckets whose registry the node cannot reach.
    pub unreachable: BucketSet,
}

/// A remembered node: seen within an hour, and not left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownNode {
    /// The row written by the node.
    pub row: NodeRow,
    /// The time since the node was last seen, by the database's clock.
    pub seen_ago: Span,
}

/// The nodes and the buckets, read by a live node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Every remembered node by id, including the reading node.
    pub nodes: Vec<KnownNode>,
    /// An instant before the buckets were read.
    pub asked: Instant,
    /// All buckets in order; `None` if the node was not known before the reading.
    pub buckets: Option<Vec<BucketRow>>,
}

impl Ledger {
    /// Writes the row of a live node, and returns every remembered node by id, including the written node.
    pub async fn node_seen(&self, node: &NodeRow) -> Result<Vec<KnownNode>, Error> {
        let mut tx = self.write().await?;
        let nodes = see(&mut tx, node).await?.nodes;
        tx.commit().await?;
        Ok(nodes)
    }

    /// Writes the row of a live node and reads the buckets, in one transaction.
    ///
    /// `buckets` is `None` unless an earlier transaction has committed the node's row. A node raising an
    /// epoch at the same moment does not see an uncommitted row, and would not wait for the reading node's
    /// lease. After `None`, the caller reads again.
    pub async fn node_reads(&self, node: &NodeRow) -> Result<Reading, Error> {
        let mut tx = self.write().await?;
        let NodesSeen { nodes, was_known } = see(&mut tx, node).await?;
        let asked = Instant::now();
        let buckets = if was_known { Some(read_buckets(&mut tx).await?) } else { None };
        tx.commit().await?;
        Ok(Reading { nodes, asked, buckets })
    }

    /// Forgets a node that shuts down cleanly.
    pub async fn node_left(&self, id: Uuid) -> Result<(), Error> {
        let mut tx = self.write().await?;
        let now = tx.now().await?;
        tx.query(include_str!("../sql/forget_node.sql"))
            .bind(id)
            .bind(later(now, REMEMBERED))
            .execute()
            .await?;
        tx.commit().await
    }
}

/// The remembered nodes, and `was_known`: the written node was seen within [`SURELY_KNOWN`] before.
struct NodesSeen {
    nodes: Vec<KnownNode>,
    was_known: bool,
}

/// Writes the row of a live node, and deletes the rows of nodes silent for [`REMEMBERED`].
async fn see(tx: &mut Tx, node: &NodeRow) -> Result<NodesSeen, Error> {
    if tx.dialect() == Dialect::Postgres {
        // A slow disk must not cost every node its lease, so the commit does not wait for the disk. A row
        // lost in a crash is written again half a second later.
        tx.query(include_str!("../sql/commit_without_waiting.sql")).execute().await?;
    }
    let now = tx.now().await?;
    let mut nodes = vec![KnownNode { row: node.clone(), seen_ago: Span::default() }];
    let mut was_known = false;
    for row in &tx.query(include_str!("../sql/nodes.sql")).fetch_all().await? {
        let (seen, row) = NodeRow::read(row)?;
        if row.id == node.id {
            was_known = later(seen, SURELY_KNOWN) > now;
        } else if later(seen, REMEMBERED) > now {
            let seen_ago = (now - seen).num_milliseconds().try_into().unwrap_or_default();
            nodes.push(KnownNode { row, seen_ago: Span::from_millis(seen_ago) });
        } else {
            let forget = tx.query(include_str!("../sql/forget_node.sql"));
            forget.bind(row.id).bind(now).execute().await?;
        }
    }
    nodes.sort_by_key(|known| known.row.id);
    tx.query(include_str!("../sql/see_node.sql"))
        .bind(node.id)
        .bind(node.name.as_str())
        .bind(now)
        .bind(&node.unreachable.as_bytes()[..])
        .execute()
        .await?;
    Ok(NodesSeen { nodes, was_known })
}

impl NodeRow {
    /// Reads the time when the node was last seen, and the node's row.
    fn read(row: &Row) -> Result<(DateTime<Utc>, Self), Error> {
        let fields = Fields(row);
        let bytes = <[u8; 32]>::try_from(fields.value::<&[u8]>("unreachable")?);
        let unreachable = BucketSet::from_bytes(bytes.map_err(|source| corrupt("unreachable", source))?);
        let node = Self { id: fields.value("id")?, name: fields.value("name")?, unreachable };
        Ok((fields.value("seen_at")?, node))
    }
}
