//! Writes that are asked for again under the same key.

use seatkeeper_core::TenantId;

use super::state::State;
use super::{Effect, License, LicenseId, Write, Written, read, write};
use crate::row::Fields;
use crate::sqlite::Tx;
use crate::{Error, times};

/// A caller's idempotency key, and what tells its request from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// The key, unique in the tenant.
    pub key: String,
    /// A hash of all that the request asks for.
    pub request_hash: Vec<u8>,
}

/// What this request was answered before, if it was.
pub(super) async fn replay(
    tx: &mut Tx,
    tenant: &TenantId,
    idempotency: Option<&Idempotency>,
) -> Result<Option<Written>, Error> {
    let Some(asked) = idempotency else {
        return Ok(None);
    };
    let kept = sqlx::query(include_str!("../../sql/idempotent_answer.sql"))
        .bind(tenant.as_str())
        .bind(&asked.key)
        .fetch_optional(&mut **tx)
        .await?;
    let Some(row) = kept else {
        return Ok(None);
    };
    let fields = Fields(&row);
    if fields.value::<&[u8]>("request_hash")? != asked.request_hash {
        return Err(Error::IdempotencyMismatch);
    }
    let license = read::in_transaction(tx, tenant, LicenseId(fields.value("license_id")?)).await?;
    let license = state(fields.value("answer")?)?.restore(license);
    Ok(Some(Written { license, effect: Effect::Replayed }))
}

fn state(answer: &str) -> Result<State, Error> {
    serde_json::from_str(answer).map_err(|source| Error::Corrupt { column: "answer", source: source.into() })
}

/// Keeps the answer for a retry.
pub(super) async fn keep(tx: &mut Tx, license: &License, write: &Write<'_>) -> Result<(), Error> {
    let Some(asked) = write.idempotency else {
        return Ok(());
    };
    sqlx::query(include_str!("../../sql/keep_idempotent_answer.sql"))
        .bind(license.tenant.as_str())
        .bind(&asked.key)
        .bind(&asked.request_hash)
        .bind(license.id.0)
        .bind(write::state_json(license)?)
        .bind(times::stored(write.at))
        .execute(&mut **tx)
        .await?;
    Ok(())
}
