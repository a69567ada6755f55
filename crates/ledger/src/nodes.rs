//! The nodes that serve, and which registries each of them cannot reach.

use chrono::{DateTime, Utc};
use seatkeeper_core::{BucketSet, Span};
use uuid::Uuid;

use crate::database::Row;
use crate::row::{Fields, corrupt};
use crate::times::later;
use crate::{Error, Ledger};

/// A node that has not been seen for so long is forgotten.
const REMEMBERED: Span = Span::from_secs(3_600);

/// What a node says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    /// Its name for the ledger, of one run of the process.
    pub id: Uuid,
    /// Its name for people.
    pub name: String,
    /// The buckets whose registry it cannot reach.
    pub unreachable: BucketSet,
}

impl Ledger {
    /// Notes that this node lives and what it can reach, and returns all that have been seen within `live`, by
    /// id, this one included. By the database's clock.
    pub async fn node_seen(&self, node: &NodeRow, live: Span) -> Result<Vec<NodeRow>, Error> {
        let mut tx = self.write().await?;
        let now = tx.now().await?;
        tx.query(include_str!("../sql/see_node.sql"))
            .bind(node.id)
            .bind(node.name.as_str())
            .bind(now)
            .bind(&node.unreachable.as_bytes()[..])
            .execute()
            .await?;
        let mut nodes = Vec::new();
        for row in &tx.query(include_str!("../sql/nodes.sql")).fetch_all().await? {
            let (seen, node) = NodeRow::read(row)?;
            if later(seen, live) > now {
                nodes.push(node);
            } else if later(seen, REMEMBERED) <= now {
                let forget = tx.query(include_str!("../sql/forget_node.sql"));
                forget.bind(node.id).bind(now).execute().await?;
            }
        }
        tx.commit().await?;
        Ok(nodes)
    }

    /// Forgets a node that ends in good order.
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

impl NodeRow {
    /// When the node was last seen, and what it said.
    fn read(row: &Row) -> Result<(DateTime<Utc>, Self), Error> {
        let fields = Fields(row);
        let bytes = <[u8; 32]>::try_from(fields.value::<&[u8]>("unreachable")?);
        let unreachable = BucketSet::from_bytes(bytes.map_err(|source| corrupt("unreachable", source))?);
        let node = Self { id: fields.value("id")?, name: fields.value("name")?, unreachable };
        Ok((fields.value("seen_at")?, node))
    }
}
