//! What nodes decided alone, each by its own memory, while the registry of a bucket was out of reach.
//!
//! Its records are a stream of their own: several nodes may have given away the same seats, so they are no part of the
//! chain of a pool's sessions, and no row of `sessions` tells of them.

use std::collections::HashMap;

use seatkeeper_core::{Event, PoolId};
use uuid::Uuid;

use crate::apply::subject;
use crate::audit::{self, Action, Entry, Stream};
use crate::{Error, Ledger, buckets};

impl Ledger {
    /// Puts on record which sessions a node began and ended alone, durably so when it returns. Any of them may be on
    /// record already: each has one record. Denials have none. Events of one pool must come in their order.
    pub async fn record_alone(&self, node: Uuid, events: &[Event]) -> Result<(), Error> {
        let mut tx = self.write().await?;
        let epochs = buckets::hold(&mut tx, events.iter().map(|event| event.pool.bucket())).await?;
        let mut last: HashMap<&PoolId, u64> = HashMap::new();
        let mut entries = Vec::new();
        for event in events {
            let Some(session) = subject(event) else { continue };
            let entry = Entry::of(event);
            let action =
                if entry.action == Action::Admitted { Action::AdmittedAlone } else { Action::EndedAlone };
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
                action,
                stream: Stream::Node,
                seq,
                epoch: epochs.get(&event.pool.bucket()).copied().unwrap_or_default(),
                live: None,
                detail: Some(serde_json::json!({ "node": node }).to_string()),
                ..entry
            });
        }
        audit::append(&mut tx, &entries).await?;
        tx.commit().await
    }
}
