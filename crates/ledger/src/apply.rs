//! Events from the registry's journal, put on record.

mod at_once;

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use seatkeeper_core::{Change, Event, PoolId, SessionId};
use uuid::Uuid;

use crate::audit::{self, Action, Entry};
use crate::database::{Pool, Tx};
use crate::row::{Fields, stored_whole};
use crate::{Error, Ledger, buckets, chain, times};

impl Ledger {
    /// Puts events on record, all of them or none, and durably so when it returns.
    ///
    /// Events of one pool must come in their order. Any of them may have been applied before, or may be applied
    /// by others at the same time: each has exactly one record in the end. Nothing of the batch is recorded if
    /// an event is of another epoch than its bucket ([`Error::StaleEpoch`]), or does not continue what is on
    /// record of its pool ([`Error::Contradiction`]).
    ///
    /// Tells of each event whether it was put on record now: of all calls that apply it, at most one is told so.
    pub async fn apply(&self, events: &[Event]) -> Result<Vec<bool>, Error> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let entries: Vec<_> = events.iter().map(Entry::of).collect();
        if let Pool::Postgres(connections) = self.writer()
            && let Some(are_new) = at_once::apply(connections, events, &entries).await?
        {
            return Ok(are_new);
        }
        self.apply_in_steps(events, &entries).await
    }

    /// Likewise, by one statement after another, which tells why events are refused. What these statements do,
    /// PostgreSQL's `apply_events` does as well: whoever changes one changes both.
    async fn apply_in_steps(&self, events: &[Event], entries: &[Entry<'_>]) -> Result<Vec<bool>, Error> {
        let mut tx = self.write().await?;
        buckets::hold_current(&mut tx, events).await?;
        chain::continues(&mut tx, events).await?;
        let head = audit::head(&mut tx).await?;
        let mut are_new = vec![true; events.len()];
        if audit::append(&mut tx, entries).await? < entries.len() {
            for event in events {
                confirm(&mut tx, event).await?;
            }
            let appended = appended_after(&mut tx, head).await?;
            are_new =
                events.iter().map(|event| appended.contains(&(event.pool.clone(), event.seq))).collect();
        }
        project(&mut tx, head, entries).await?;
        tx.commit().await?;
        Ok(are_new)
    }
}

/// The places of the records after `head`: nobody but this transaction appends to the buckets that it holds.
async fn appended_after(tx: &mut Tx, head: i64) -> Result<HashSet<(PoolId, u64)>, Error> {
    let rows = tx.query(include_str!("../sql/records_after.sql")).bind(head).fetch_all().await?;
    let place = |row| {
        let fields = Fields(row);
        Ok((fields.pool()?, fields.whole("seq")?))
    };
    rows.iter().map(place).collect()
}

/// Brings `sessions` up to date with the records after `head`. First the sessions of earlier batches
/// that end, so that a holder who is back finds its place free.
async fn project(tx: &mut Tx, head: i64, entries: &[Entry<'_>]) -> Result<(), Error> {
    for (action, statement) in [
        (Action::Ended, include_str!("../sql/end_sessions.sql")),
        (Action::Admitted, include_str!("../sql/begin_sessions.sql")),
    ] {
        if entries.iter().any(|entry| entry.action == action) {
            tx.query(statement).bind(head).execute().await?;
        }
    }
    Ok(())
}

/// Makes sure that what stands at the event's place is the event.
async fn confirm(tx: &mut Tx, event: &Event) -> Result<(), Error> {
    let row = tx
        .query(include_str!("../sql/recorded_event.sql"))
        .bind(event.pool.tenant.as_str())
        .bind(event.pool.kind.as_str())
        .bind(&*event.pool.name)
        .bind(stored_whole(event.seq))
        .fetch_one()
        .await?;
    let recorded: (DateTime<Utc>, &str, Option<Uuid>) =
        (row.get("at")?, row.get("action")?, row.get("session_id")?);
    let session = subject(event).map(SessionId::as_uuid);
    if recorded == (times::stored(event.at), Entry::of(event).action.as_str(), session) {
        return Ok(());
    }
    Err(Error::Contradiction { pool: Box::new(event.pool.clone()), seq: event.seq })
}

/// The session that an event begins or ends; none: it denies one.
pub(crate) fn subject(event: &Event) -> Option<SessionId> {
    match &event.change {
        Change::Admitted { session, .. } => Some(session.id),
        Change::Ended { session, .. } => Some(*session),
        Change::Denied(_) => None,
    }
}
