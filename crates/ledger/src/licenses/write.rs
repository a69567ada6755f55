//! Steps shared by all writes to a license.

use super::License;
use super::license::pool_of;
use super::state::State;
use crate::audit::{Action, EntitlementChange, Stream, next_seq};
use crate::database::{Query, Tx};
use crate::idempotency::{self, Entity, StoredAnswer};
use crate::row::{stored_json, stored_whole};
use crate::{Error, Write, times};

/// Appends the record of a license's new state.
pub(super) async fn record(
    tx: &mut Tx,
    action: Action,
    license: &License,
    write: &Write<'_>,
) -> Result<(), Error> {
    let pool = pool_of(&license.tenant, license.id);
    let change = EntitlementChange {
        pool: &pool,
        stream: Stream::Entitlement,
        seq: next_seq(tx, &pool, Stream::Entitlement).await?,
        action,
        limit: license.max_seats.0,
        version: license.version,
        state: stored_json(&State::from_license(license))?,
    };
    change.record(tx, write).await
}

/// Keeps the answer for a retry.
pub(super) async fn keep(tx: &mut Tx, license: &License, write: &Write<'_>) -> Result<(), Error> {
    let answer = StoredAnswer { id: license.id.to_string(), state: State::from_license(license) };
    let pool = license.pool();
    idempotency::keep(tx, &license.tenant, (Entity::License, Some(&*pool.name)), &answer, write).await
}

/// Inserts the license's row.
pub(super) async fn insert(tx: &mut Tx, license: &License) -> Result<(), Error> {
    let statement = tx.query(include_str!("../../sql/create_license.sql"));
    match bound(statement, license).execute().await {
        Ok(_) => Ok(()),
        Err(error) if crate::database::is_duplicate(&error) => Err(Error::DuplicateKey),
        Err(error) => Err(error.into()),
    }
}

/// Overwrites the license's row with the new state.
pub(super) async fn replace(tx: &mut Tx, license: &License) -> Result<(), Error> {
    bound(tx.query(include_str!("../../sql/update_license.sql")), license).execute().await?;
    Ok(())
}

/// Binds the license's columns, in the order shared by `create_license.sql` and `update_license.sql`.
fn bound<'c>(query: Query<'c>, license: &License) -> Query<'c> {
    query
        .bind(license.id.0)
        .bind(license.tenant.as_str())
        .bind(license.key.reveal())
        .bind(i64::from(license.max_seats.0))
        .bind(license.status.as_str())
        .bind(license.expires_at.map(times::stored))
        .bind(license.count_per.as_str())
        .bind(license.clients.as_str())
        .bind(license.ttl_seconds.map(i64::from))
        .bind(i64::from(license.grace_seconds))
        .bind(license.reacquire.as_str())
        .bind(license.contact.as_deref())
        .bind(stored_whole(license.version))
        .bind(times::stored(license.updated_at))
}
