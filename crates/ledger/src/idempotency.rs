//! Idempotent writes: a retry under the same key gets the first answer.

use seatkeeper_core::{TenantId, named_enum};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::database::Tx;
use crate::row::{Fields, stored_json};
use crate::{Error, Write, times};

/// A caller's idempotency key and the hash of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// The key, unique in the tenant.
    pub key: String,
    /// The hash of the whole request.
    pub request_hash: Vec<u8>,
}

named_enum! {
    /// The kind of a written entity.
    pub(crate) enum Entity {
        License = "license",
        Plan = "plan",
        Subscription = "subscription",
    }
}

/// The kept answer of an earlier request.
pub(crate) struct StoredAnswer<S> {
    /// The id of the written entity.
    pub(crate) id: String,
    /// The entity's state at the answer.
    pub(crate) state: S,
}

/// Returns the kept answer of an earlier request under the write's key, if any. A different request under the
/// key gives [`Error::IdempotencyMismatch`].
pub(crate) async fn answered<S: DeserializeOwned>(
    tx: &mut Tx,
    tenant: &TenantId,
    entity: Entity,
    write: &Write<'_>,
) -> Result<Option<StoredAnswer<S>>, Error> {
    let Some(asked) = write.idempotency else {
        return Ok(None);
    };
    let kept = tx
        .query(include_str!("../sql/idempotent_answer.sql"))
        .bind(tenant.as_str())
        .bind(&asked.key)
        .fetch_optional()
        .await?;
    let Some(row) = kept else {
        return Ok(None);
    };
    let fields = Fields(&row);
    let same = fields.value::<&[u8]>("request_hash")? == asked.request_hash
        && fields.value::<&str>("entity_kind")? == entity.as_str();
    if !same {
        return Err(Error::IdempotencyMismatch);
    }
    Ok(Some(StoredAnswer { id: fields.value("entity_id")?, state: fields.json("answer")? }))
}

/// Keeps the answer for a retry.
pub(crate) async fn keep<S: Serialize + Sync>(
    tx: &mut Tx,
    tenant: &TenantId,
    entity: Entity,
    answer: &StoredAnswer<S>,
    write: &Write<'_>,
) -> Result<(), Error> {
    let Some(asked) = write.idempotency else {
        return Ok(());
    };
    tx.query(include_str!("../sql/keep_idempotent_answer.sql"))
        .bind(tenant.as_str())
        .bind(&asked.key)
        .bind(&asked.request_hash)
        .bind(entity.as_str())
        .bind(&answer.id)
        .bind(stored_json(&answer.state)?)
        .bind(times::stored(write.at))
        .execute()
        .await?;
    Ok(())
}
