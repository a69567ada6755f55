//! Idempotent writes: a retry under the same key gets the first answer. The kept answers of a pool go along to another region
//! with the pool.

use seatkeeper_core::{PoolId, PoolKind, RegistryTime, TenantId, named_enum};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::database::{Row, Tx};
use crate::row::{Fields, stored_json};
use crate::{Error, Ledger, Write, times};

/// The most kept answers that go along with a pool: the newest.
const MOVED_MAX: i64 = 100;

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

/// The kept answer to a write, on its way to another region with the pool of the license or subscription.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptAnswer {
    key: String,
    request_hash: Vec<u8>,
    entity_id: String,
    answer: String,
    at: RegistryTime,
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

/// Keeps the answer for a retry. `pool` is the name of the pool to which the entity belongs, if any.
pub(crate) async fn keep<S: Serialize + Sync>(
    tx: &mut Tx,
    tenant: &TenantId,
    (entity, pool): (Entity, Option<&str>),
    answer: &StoredAnswer<S>,
    write: &Write<'_>,
) -> Result<(), Error> {
    let Some(asked) = write.idempotency else {
        return Ok(());
    };
    let kept = KeptAnswer {
        key: asked.key.clone(),
        request_hash: asked.request_hash.clone(),
        entity_id: answer.id.clone(),
        answer: stored_json(&answer.state)?,
        at: write.at,
    };
    insert(tx, tenant, (entity, pool), &kept).await
}

/// Keeps the answers that have come along with a pool from another region. The caller must [`hold`](crate::tenants::hold) the
/// tenant: the answer of a concurrent write under the same key would be left out, after the write has taken effect.
pub(crate) async fn keep_arrived(tx: &mut Tx, pool: &PoolId, answers: &[KeptAnswer]) -> Result<(), Error> {
    let Some(entity) = Entity::with_pool(pool.kind) else { return Ok(()) };
    for kept in answers {
        insert(tx, &pool.tenant, (entity, Some(&*pool.name)), kept).await?;
    }
    Ok(())
}

async fn insert(
    tx: &mut Tx,
    tenant: &TenantId,
    (entity, pool): (Entity, Option<&str>),
    kept: &KeptAnswer,
) -> Result<(), Error> {
    let keeping = tx.query(include_str!("../sql/keep_idempotent_answer.sql")).bind(tenant.as_str());
    let keeping = keeping.bind(&kept.key).bind(&kept.request_hash).bind(entity.as_str());
    let keeping = keeping.bind(&kept.entity_id).bind(pool).bind(&kept.answer);
    keeping.bind(times::stored(kept.at)).execute().await?;
    Ok(())
}

impl Ledger {
    /// Returns the kept answers of the writes to a pool's license or subscription, at most the newest 100.
    pub async fn kept_answers(&self, pool: &PoolId) -> Result<Vec<KeptAnswer>, Error> {
        let Some(entity) = Entity::with_pool(pool.kind) else { return Ok(Vec::new()) };
        let kept = self.readers().query(include_str!("../sql/kept_answers.sql")).bind(pool.tenant.as_str());
        let rows = kept.bind(entity.as_str()).bind(&*pool.name).bind(MOVED_MAX).fetch_all().await?;
        rows.iter().map(KeptAnswer::read).collect()
    }
}

impl Entity {
    /// Returns the kind of the entity that grants the seats of a pool; `None` if the pool has none.
    fn with_pool(kind: PoolKind) -> Option<Self> {
        match kind {
            PoolKind::License => Some(Self::License),
            PoolKind::Subscriber => Some(Self::Subscription),
            PoolKind::Capacity | PoolKind::Group => None,
        }
    }
}

impl KeptAnswer {
    fn read(row: &Row) -> Result<Self, Error> {
        let fields = Fields(row);
        Ok(Self {
            key: fields.value("idempotency_key")?,
            request_hash: fields.value::<&[u8]>("request_hash")?.to_vec(),
            entity_id: fields.value("entity_id")?,
            answer: fields.value("answer")?,
            at: fields.time("at")?,
        })
    }
}
