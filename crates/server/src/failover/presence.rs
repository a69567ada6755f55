//! This node among the others, as the ledger knows them.

use std::sync::Arc;

use seatkeeper_core::Span;
use seatkeeper_ledger::{Error, Ledger, NodeRow};
use uuid::Uuid;

use super::Reach;

/// For how long a node counts as live after it was last seen. Longer than a lease: who has one is live.
const LIVE: Span = Span::from_secs(5);

/// What this node says of itself.
pub(crate) struct Presence {
    id: Uuid,
    name: String,
    ledger: Ledger,
    reach: Arc<Reach>,
}

impl Presence {
    /// Of a node that goes by `name` for people.
    pub(crate) fn new(name: String, ledger: Ledger, reach: Arc<Reach>) -> Self {
        Self { id: Uuid::new_v4(), name, ledger, reach }
    }

    /// Its name for the ledger: another one in each run of the process.
    pub(crate) fn id(&self) -> Uuid {
        self.id
    }

    /// Tells that it lives, and returns all that do.
    pub(super) async fn seen(&self) -> Result<Vec<NodeRow>, Error> {
        let unreachable = self.reach.unreachable();
        self.ledger.node_seen(&NodeRow { id: self.id, name: self.name.clone(), unreachable }, LIVE).await
    }

    /// Whether no other node lives that may still go by an older epoch. One that comes later reads the new one.
    pub(super) async fn is_alone(&self) -> Result<bool, Error> {
        Ok(self.seen().await?.iter().all(|node| node.id == self.id))
    }

    /// Tells that it does no more.
    pub(crate) async fn left(&self) {
        if let Err(error) = self.ledger.node_left(self.id).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "the other nodes were not told that this one stops; they will see it");
        }
    }
}
