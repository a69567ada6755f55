//! Records of sessions that nodes began and ended alone, while a bucket's registry or a subscriber's home was unreachable.
//!
//! The records form a separate stream, [`Stream::Node`]. Several nodes may have given away the same seats, so
//! the records are not part of a pool's session chain, and table `sessions` has no rows for them.

use std::collections::HashMap;

use seatkeeper_core::{Change, Event, PoolId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::apply::subject;
use crate::audit::{self, Action, Entry, Stream};
use crate::row::stored_whole;
use crate::{Error, Ledger, buckets};

/// A node that decides alone: the JSON detail of a node's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LoneNode {
    /// The node's id, new in each run of the process.
    #[serde(rename = "node")]
    pub id: Uuid,
    /// The node decides in place of a subscriber's unreachable home region, by the terms that the home has told. Otherwise
    /// the node decides in place of the unreachable registry.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_home: bool,
}

impl LoneNode {
    /// Returns the detail of the node's records. A detail of the same content in another spelling is no record of ours:
    /// `told_terms.sql` searches for the text.
    pub(crate) fn to_detail(self) -> String {
        serde_json::json!(self).to_string()
    }
}

impl Ledger {
    /// Records the sessions that a node began and ended alone, durably. The call is idempotent: each
    /// session's begin and end have one record. Denials are not recorded. Events of one pool must come in
    /// order.
    pub async fn record_node_local(&self, node: LoneNode, events: &[Event]) -> Result<(), Error> {
        let detail = node.to_detail();
        let mut tx = self.write().await?;
        let epochs = buckets::hold(&mut tx, events.iter().map(|event| event.pool.bucket())).await?;
        let mut last: HashMap<&PoolId, u64> = HashMap::new();
        let mut entries = Vec::new();
        for event in events {
            let Some(session) = subject(event) else { continue };
            let action = match &event.change {
                Change::Admitted { .. } => Action::AdmittedAlone,
                Change::Ended { .. } | Change::Denied(_) => Action::EndedAlone,
            };
            let recorded = tx.query(include_str!("../sql/is_recorded_alone.sql"));
            if recorded.bind(session.as_uuid()).bind(action.as_str()).scalar().await? {
                continue;
            }
            let seq = match last.get(&event.pool) {
                Some(last) => last + 1,
                None => audit::next_seq(&mut tx, &event.pool, Stream::Node).await?,
            };
            last.insert(&event.pool, seq);
            entries.push(Entry {
                action: action.as_str(),
                stream: Stream::Node.as_str(),
                seq: stored_whole(seq),
                epoch: stored_whole(epochs.get(&event.pool.bucket()).copied().unwrap_or_default()),
                live: None,
                detail: Some(detail.clone()),
                ..Entry::from_event(event)
            });
        }
        audit::append(&mut tx, &entries).await?;
        tx.commit().await
    }
}
