//! Applies events of the registry's journal to the ledger.
//!
//! Applying is idempotent and atomic: each event has exactly one audit record, and a batch is recorded whole
//! or not at all.

mod at_once;

use std::borrow::Borrow;
use std::collections::HashSet;

use chrono::{DateTime, Utc};
use seatkeeper_core::{Change, Event, PoolId, SessionId};
use uuid::Uuid;

use crate::audit::{self, Action, Entry};
use crate::database::{Dialect, Pool, Tx};
use crate::row::Fields;
use crate::{Error, Ledger, buckets, chain};

impl Ledger {
    /// Records a batch of events atomically. The batch is durable when the call returns.
    ///
    /// Events of one pool must come in order. An event may have been applied before, or by a concurrent call:
    /// the ledger keeps exactly one record per event, until retention deletes the record. An event whose epoch is
    /// not its bucket's gives [`Error::StaleEpoch`], and an event not continuing the pool's record gives
    /// [`Error::Contradiction`]. After an error nothing of the batch is recorded.
    ///
    /// Returns a flag for each event: `true` if the call recorded the event. At most one of all calls
    /// applying an event returns `true`.
    pub async fn apply(&self, events: &[Event]) -> Result<Vec<bool>, Error> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let entries: Vec<_> = events.iter().map(Entry::from_event).collect();
        if let Pool::Postgres(connections) = self.writer()
            && let Some(are_new) = at_once::apply(connections, events, &entries).await?
        {
            return Ok(are_new);
        }
        self.apply_in_steps(events, &entries).await
    }

    /// Applies the events by several statements, on SQLite, and on PostgreSQL after a refusal, to find the
    /// reason. PostgreSQL's function `apply_events` does the same in one call, but refuses events up to the cut of
    /// their pool. A change of either must be made in both.
    async fn apply_in_steps(&self, events: &[Event], entries: &[Entry<'_>]) -> Result<Vec<bool>, Error> {
        loop {
            if let Some(are_new) = self.try_in_steps(events, entries).await? {
                return Ok(are_new);
            }
        }
    }

    /// Applies the events. `None` means that a concurrent purge has cut a pool of the batch, and nothing has
    /// changed.
    async fn try_in_steps(
        &self,
        events: &[Event],
        entries: &[Entry<'_>],
    ) -> Result<Option<Vec<bool>>, Error> {
        let mut tx = self.write().await?;
        buckets::hold_current(&mut tx, events).await?;
        chain::continues(&mut tx, events).await?;
        let cuts = chain::cuts(&mut tx, events).await?;
        let after_cut = |event: &Event| cuts.get(&event.pool).is_none_or(|cut| event.seq > *cut);
        let head = audit::head(&mut tx).await?;
        let mut are_new: Vec<_> = events.iter().map(after_cut).collect();
        let fresh: Vec<_> =
            entries.iter().zip(&are_new).filter_map(|(entry, is_new)| is_new.then_some(entry)).collect();
        let appended = audit::append(&mut tx, &fresh).await?;
        // An append may wait for a purge in PostgreSQL, and then add a record that the purge has deleted.
        if tx.dialect() == Dialect::Postgres && chain::cuts(&mut tx, events).await? != cuts {
            return Ok(None);
        }
        if appended < entries.len() {
            for (event, entry) in events.iter().zip(entries) {
                confirm(&mut tx, event, entry).await?;
            }
            let appended = appended_after(&mut tx, head).await?;
            are_new =
                events.iter().map(|event| appended.contains(&(event.pool.clone(), event.seq))).collect();
        }
        project(&mut tx, head, &fresh).await?;
        tx.commit().await?;
        Ok(Some(are_new))
    }
}

/// Returns the pools and numbers of the records after `head`. The transaction holds the buckets, so no
/// concurrent transaction appended them.
async fn appended_after(tx: &mut Tx, head: i64) -> Result<HashSet<(PoolId, u64)>, Error> {
    let rows = tx.query(include_str!("../sql/records_after.sql")).bind(head).fetch_all().await?;
    let place = |row| {
        let fields = Fields(row);
        Ok((fields.pool()?, fields.whole("seq")?))
    };
    rows.iter().map(place).collect()
}

/// Projects the records after `head` into `sessions`. Ends of sessions from earlier batches come first, to
/// free the place of a returning holder.
pub(crate) async fn project<'e>(
    tx: &mut Tx,
    head: i64,
    entries: &[impl Borrow<Entry<'e>>],
) -> Result<(), Error> {
    for (action, statement) in [
        (Action::Ended, include_str!("../sql/end_sessions.sql")),
        (Action::Admitted, include_str!("../sql/begin_sessions.sql")),
    ] {
        if entries.iter().any(|entry| entry.borrow().action == action.as_str()) {
            tx.query(statement).bind(head).execute().await?;
        }
    }
    Ok(())
}

/// Checks that the record with the event's number is the event. Retention may have deleted the record.
async fn confirm(tx: &mut Tx, event: &Event, entry: &Entry<'_>) -> Result<(), Error> {
    let Some(row) = tx
        .query(include_str!("../sql/recorded_event.sql"))
        .bind(entry.tenant_id)
        .bind(entry.pool_kind)
        .bind(entry.pool_id)
        .bind(entry.seq)
        .fetch_optional()
        .await?
    else {
        return Ok(());
    };
    let recorded: (DateTime<Utc>, &str, Option<Uuid>) =
        (row.get("at")?, row.get("action")?, row.get("session_id")?);
    if recorded == (entry.at, entry.action, entry.session_id) {
        return Ok(());
    }
    Err(Error::Contradiction { pool: Box::new(event.pool.clone()), seq: event.seq })
}

/// Returns the session begun or ended by an event; `None` for a denial.
pub(crate) fn subject(event: &Event) -> Option<SessionId> {
    match &event.change {
        Change::Admitted { session, .. } => Some(session.id),
        Change::Ended { session, .. } => Some(*session),
        Change::Denied(_) => None,
    }
}
