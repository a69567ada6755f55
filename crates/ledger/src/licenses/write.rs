//! What every write to a license has in common.

use seatkeeper_core::{Origin, RegistryTime};

use super::license::pool_of;
use super::state::State;
use super::{Idempotency, License};
use crate::Error;
use crate::audit::{self, Action, Entry, Stream};
use crate::row::stored_whole;
use crate::sqlite::Tx;

/// By whom, when and under which idempotency key a license is written.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// What caused it.
    pub origin: &'a Origin,
    /// The registry's time.
    pub at: RegistryTime,
    /// The caller's idempotency key, if it sent one.
    pub idempotency: Option<&'a Idempotency>,
}

/// What became of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The license after it; of a replay, as it was answered then.
    pub license: License,
    /// What it did.
    pub effect: Effect,
}

/// What a write did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It changed the license.
    Changed,
    /// The license was so already.
    Unchanged,
    /// The same request was answered before; nothing was done again.
    Replayed,
}

/// Appends the record of a license's new state.
pub(super) async fn record(
    tx: &mut Tx,
    action: Action,
    license: &License,
    write: &Write<'_>,
) -> Result<(), Error> {
    let pool = pool_of(&license.tenant, license.id);
    let epoch: i64 = sqlx::query_scalar(include_str!("../../sql/epoch.sql"))
        .bind(i64::from(pool.bucket().number()))
        .fetch_one(&mut **tx)
        .await?;
    let entry = Entry {
        at: write.at,
        pool: &pool,
        stream: Stream::Entitlement,
        seq: license.version,
        epoch: epoch.unsigned_abs(),
        action,
        origin: write.origin,
        limit: license.max_seats.0,
        version: license.version,
        live: None,
        count: 1,
        folded: false,
        reason: None,
        holder: None,
        session: None,
        detail: Some(state_json(license)?),
    };
    match audit::append(tx, &[entry]).await? {
        1 => Ok(()),
        _ => Err(Error::Contradiction { pool: format!("{pool:?}"), seq: license.version }),
    }
}

/// The license's state as JSON.
pub(super) fn state_json(license: &License) -> Result<String, Error> {
    serde_json::to_string(&State::of(license))
        .map_err(|source| Error::Corrupt { column: "detail", source: source.into() })
}

/// The tenant's row, and then the license's own, at version 1.
pub(super) async fn insert(tx: &mut Tx, license: &License) -> Result<(), Error> {
    let created_at = crate::times::stored(license.created_at);
    sqlx::query(include_str!("../../sql/add_tenant.sql"))
        .bind(license.tenant.as_str())
        .bind(created_at)
        .execute(&mut **tx)
        .await?;
    let inserted = sqlx::query(include_str!("../../sql/create_license.sql"))
        .bind(license.id.0)
        .bind(license.tenant.as_str())
        .bind(license.key.reveal())
        .bind(license.max_seats.0)
        .bind(license.status.as_str())
        .bind(license.expires_at.map(crate::times::stored))
        .bind(license.count_per.as_str())
        .bind(license.ttl_seconds)
        .bind(license.contact.as_deref())
        .bind(created_at)
        .execute(&mut **tx)
        .await;
    match inserted {
        Ok(_) => Ok(()),
        Err(error) if crate::sqlite::is_duplicate(&error) => Err(Error::DuplicateKey),
        Err(error) => Err(error.into()),
    }
}

/// Overwrites the license's row with its new state.
pub(super) async fn replace(tx: &mut Tx, license: &License) -> Result<(), Error> {
    sqlx::query(include_str!("../../sql/update_license.sql"))
        .bind(license.id.0)
        .bind(license.max_seats.0)
        .bind(license.status.as_str())
        .bind(license.expires_at.map(crate::times::stored))
        .bind(license.count_per.as_str())
        .bind(license.ttl_seconds)
        .bind(license.contact.as_deref())
        .bind(stored_whole(license.version))
        .bind(crate::times::stored(license.updated_at))
        .execute(&mut **tx)
        .await?;
    Ok(())
}
