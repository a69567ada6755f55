//! Applies events with a single call of PostgreSQL's function `apply_events`, to save round trips.

use std::collections::BTreeSet;

use seatkeeper_core::Event;
use seatkeeper_postgres::Connections;
use sqlx::PgConnection;

use crate::Error;
use crate::audit::Entry;
use crate::buckets::stored;
use crate::chain::places_before;
use crate::database::Query;
use crate::row::stored_whole;

/// The SQLSTATEs of a refused batch. `apply_events` raises the first. The second, `datatype_mismatch`, means
/// that a newer program has added a column to `audit_log`.
const REFUSED: [&str; 2] = ["SK001", "42804"];

/// Records events, and returns a flag for each event: `true` if the call recorded the event. `None` means
/// that PostgreSQL refused the batch and changed nothing.
pub(super) async fn apply(
    connections: &Connections,
    events: &[Event],
    entries: &[Entry<'_>],
) -> Result<Option<Vec<bool>>, Error> {
    let mut connection = connections.acquire_kept().await?;
    // The result must be read to the end: PostgreSQL commits after sending the last row.
    let numbers = query(&mut connection, events, entries).scalars::<i64>().await;
    match &numbers {
        Ok(_) => connections.keep(connection),
        Err(sqlx::Error::Io(_) | sqlx::Error::Protocol(_)) => connection.close_on_drop(),
        Err(_) => drop(connection),
    }
    let recorded_before = match numbers {
        Err(sqlx::Error::Database(refused))
            if refused.code().is_some_and(|code| REFUSED.contains(&&*code)) =>
        {
            return Ok(None);
        }
        numbers => numbers?,
    };
    let mut are_new = vec![true; events.len()];
    for number in recorded_before {
        // `apply_events` counts events from 1.
        if let Some(is_new) = are_new.get_mut((number - 1) as usize) {
            *is_new = false;
        }
    }
    Ok(Some(are_new))
}

/// Builds the call of `apply_events`. `migrations/postgres/0002_apply_events.sql` documents the arguments.
fn query<'c>(connection: &'c mut PgConnection, events: &[Event], entries: &[Entry<'_>]) -> Query<'c> {
    let buckets: BTreeSet<_> = events.iter().map(|event| (event.pool.bucket(), event.epoch)).collect();
    let before = places_before(events);
    let text = sqlx::query(include_str!("../../sql/apply_events.sql"))
        .bind(column(&buckets, |(bucket, _)| stored(*bucket)))
        .bind(column(&buckets, |(_, epoch)| stored_whole(*epoch)))
        .bind(column(&before, |(pool, _)| pool.tenant.as_str()))
        .bind(column(&before, |(pool, _)| pool.kind.as_str()))
        .bind(column(&before, |(pool, _)| &*pool.name))
        .bind(column(&before, |(_, seq)| stored_whole(*seq)))
        .bind(entries);
    Query::on_postgres(text, connection)
}

fn column<'a, I, T: 'a, V>(rows: I, value: impl FnMut(&'a T) -> V) -> Vec<V>
where
    I: IntoIterator<Item = &'a T>,
{
    rows.into_iter().map(value).collect()
}
