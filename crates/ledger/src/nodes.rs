//! The serving nodes: the unreachable buckets and the names of each node.
//!
//! A node may extend its lease without the ledger, by the word of every node that it *names*. Each row tells the
//! names of its node. A node that raises an epoch is therefore refused while a remembered node may extend its
//! lease without the raising node's word.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use seatkeeper_core::{BucketSet, Span};
use uuid::Uuid;

use crate::database::{Dialect, Row, Tx};
use crate::row::{Fields, corrupt};
use crate::times::later;
use crate::{Error, Ledger};

/// A silent node is forgotten after this time: an hour after the latest end of a lease that was extended without
/// the ledger.
const REMEMBERED: Span = Span::from_secs(25 * 3_600);

/// A node counts as live for this time after being seen. Only a live node may raise epochs: every node that
/// starts meanwhile names the raising node.
const LIVE: Span = Span::from_secs(5);

/// The length of a node's id in column `named`.
const ID_LENGTH: usize = 16;

/// The row written by a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    /// The id of one run of the node's process.
    pub id: Uuid,
    /// The node's name for people.
    pub name: String,
    /// The buckets whose registry the node cannot reach.
    pub unreachable: BucketSet,
    /// The nodes without whose word this node extends no lease. Empty for a node without a lease, and for a
    /// node that extends no lease.
    pub named: BTreeSet<Uuid>,
}

/// A remembered node: seen within 25 hours, not left, and not forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownNode {
    /// The row written by the node.
    pub row: NodeRow,
    /// The time when the node was last seen, by the database's clock.
    pub seen_at: DateTime<Utc>,
    /// The time since `seen_at`.
    pub seen_ago: Span,
}

impl KnownNode {
    /// Returns whether the node was seen within 5 s.
    pub fn is_live(&self) -> bool {
        self.seen_ago < LIVE
    }

    /// Returns whether this node may extend a lease without the word of `node`.
    pub fn may_overlook(&self, node: Uuid) -> bool {
        self.row.id != node && !self.row.named.is_empty() && !self.row.named.contains(&node)
    }
}

impl Ledger {
    /// Returns every remembered node by id.
    pub async fn nodes(&self) -> Result<Vec<KnownNode>, Error> {
        let mut tx = self.readers().begin_snapshot().await?;
        let now = tx.now().await?;
        remembered(&mut tx, now).await
    }
}

/// Forgets a node that shuts down cleanly.
pub(crate) async fn forget(tx: &mut Tx, id: Uuid) -> Result<(), Error> {
    let now = tx.now().await?;
    let forget = tx.query(include_str!("../sql/forget_node.sql"));
    forget.bind(id).bind(later(now, REMEMBERED)).execute().await?;
    Ok(())
}

/// Forgets a node without a lease. Returns `false` for a node seen after its `seen_at`, which stays.
pub(crate) async fn forget_silent(tx: &mut Tx, node: &KnownNode) -> Result<bool, Error> {
    let forget = tx.query(include_str!("../sql/forget_silent_node.sql"));
    Ok(forget.bind(node.row.id).bind(node.seen_at).execute().await? > 0)
}

/// Returns `Err(RaiserNotLive)` unless the node was seen within 5 s, and `Err(RaiseOverlooked)` while a
/// remembered node may extend its lease without the word of `raiser`.
pub(crate) async fn refuse_overlooked_raise(tx: &mut Tx, raiser: Uuid) -> Result<(), Error> {
    let now = tx.now().await?;
    let nodes = remembered(tx, now).await?;
    if !nodes.iter().any(|node| node.row.id == raiser && node.is_live()) {
        return Err(Error::RaiserNotLive);
    }
    let nodes: Vec<_> = nodes.into_iter().filter(|node| node.may_overlook(raiser)).collect();
    if nodes.is_empty() {
        return Ok(());
    }
    Err(Error::RaiseOverlooked { nodes: nodes.into_iter().map(|node| node.row.name).collect() })
}

/// Forgets the silent nodes, for a process that uses the ledger alone. Returns `Err(NodesServe)` if a node is live, or may
/// extend its lease without the ledger.
pub(crate) async fn leave_to_sole_user(tx: &mut Tx) -> Result<(), Error> {
    let now = tx.now().await?;
    let mut serving = Vec::new();
    for node in read_nodes(tx, now).await? {
        if node.is_remembered() && (node.is_live() || !node.row.named.is_empty()) {
            serving.push(node.row.name);
        } else {
            let forget = tx.query(include_str!("../sql/forget_silent_node.sql"));
            forget.bind(node.row.id).bind(node.seen_at).execute().await?;
        }
    }
    if serving.is_empty() { Ok(()) } else { Err(Error::NodesServe { nodes: serving }) }
}

/// The remembered nodes, and `was_known`: the written node was remembered before.
pub(crate) struct NodesSeen {
    pub(crate) nodes: Vec<KnownNode>,
    pub(crate) was_known: bool,
}

/// Writes the row of a live node, and deletes the rows of nodes silent for [`REMEMBERED`].
pub(crate) async fn see(tx: &mut Tx, node: &NodeRow) -> Result<NodesSeen, Error> {
    let now = tx.now().await?;
    let mut nodes = vec![KnownNode { row: node.clone(), seen_at: now, seen_ago: Span::default() }];
    let (mut was_known, mut names_stay) = (false, false);
    for known in read_nodes(tx, now).await? {
        if known.row.id == node.id {
            was_known = known.is_remembered();
            names_stay = known.row.named == node.named;
        } else if known.is_remembered() {
            nodes.push(known);
        } else {
            let forget = tx.query(include_str!("../sql/forget_silent_node.sql"));
            forget.bind(known.row.id).bind(known.seen_at).execute().await?;
        }
    }
    if was_known && names_stay && tx.dialect() == Dialect::Postgres {
        // A slow disk must not cost every node its lease, so the commit does not wait for the disk. A crash may
        // lose the latest half second of a row. The first row of a node waits for the disk: a node that has
        // read the buckets is remembered. A row with other names waits, too: a crash must not bring a name back
        // that the node counts as dropped.
        tx.query(include_str!("../sql/commit_without_waiting.sql")).execute().await?;
    }
    nodes.sort_by_key(|known| known.row.id);
    // A node that reads no buckets has no lease, whatever its row says.
    let named = node.named.iter().filter(|_| was_known).flat_map(|id| *id.as_bytes()).collect::<Vec<_>>();
    tx.query(include_str!("../sql/see_node.sql"))
        .bind(node.id)
        .bind(node.name.as_str())
        .bind(now)
        .bind(&node.unreachable.as_bytes()[..])
        .bind(named.as_slice())
        .execute()
        .await?;
    Ok(NodesSeen { nodes, was_known })
}

async fn remembered(tx: &mut Tx, now: DateTime<Utc>) -> Result<Vec<KnownNode>, Error> {
    let nodes = read_nodes(tx, now).await?;
    Ok(nodes.into_iter().filter(KnownNode::is_remembered).collect())
}

async fn read_nodes(tx: &mut Tx, now: DateTime<Utc>) -> Result<Vec<KnownNode>, Error> {
    let rows = tx.query(include_str!("../sql/nodes.sql")).fetch_all().await?;
    rows.iter().map(|row| KnownNode::read(row, now)).collect()
}

impl KnownNode {
    fn is_remembered(&self) -> bool {
        self.seen_ago < REMEMBERED
    }

    fn read(row: &Row, now: DateTime<Utc>) -> Result<Self, Error> {
        let fields = Fields(row);
        let seen_at: DateTime<Utc> = fields.value("seen_at")?;
        let bytes = <[u8; 32]>::try_from(fields.value::<&[u8]>("unreachable")?);
        let unreachable = BucketSet::from_bytes(bytes.map_err(|source| corrupt("unreachable", source))?);
        let (named, _) = fields.value::<&[u8]>("named")?.as_chunks::<ID_LENGTH>();
        let named = named.iter().map(|id| Uuid::from_bytes(*id)).collect();
        let row = NodeRow { id: fields.value("id")?, name: fields.value("name")?, unreachable, named };
        let seen_ago = (now - seen_at).num_milliseconds().try_into().unwrap_or_default();
        Ok(Self { row, seen_at, seen_ago: Span::from_millis(seen_ago) })
    }
}
