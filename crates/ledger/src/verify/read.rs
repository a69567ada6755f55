//! Feeds the whole ledger to replays, pool by pool.

use futures_util::TryStreamExt as _;
use seatkeeper_core::{PoolId, PoolKind, TenantId};

use super::{Cut, Finding, PlanHistory, Proof, Replay};
use crate::audit::{AuditRecord, Stream};
use crate::clock_repair::ClockRepair;
use crate::database::{Row, Tx};
use crate::row::Fields;
use crate::sessions::SessionRecord;
use crate::{Error, Ledger, copies};

/// The result of a verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The whole log is proven.
    Proven(Proof),
    /// The first violation found in the log.
    Broken(Box<Finding>),
}

impl Ledger {
    /// Replays the whole log and compares table `sessions` with the log, even beside a process writing to the
    /// ledger. After each pool, `progress` gets the proof so far.
    pub async fn verify(&self, mut progress: impl FnMut(&Proof) + Send) -> Result<Verdict, Error> {
        // A single read transaction gives every query one snapshot.
        let mut tx = self.readers().begin_snapshot().await?;
        let mut proof = Proof::default();
        let repairs = clock_repairs(&mut tx).await?;
        proof.clock_repairs = repairs.len() as u64;
        let version_floors = copies::version_floors(&mut tx).await?;
        let mut after = (String::new(), String::new(), String::new());
        // The plans of the tenant of the current pool.
        let mut plans = (TenantId::from(""), PlanHistory::default());
        while let Some(row) = next_pool(&mut tx, &after).await? {
            let (pool, cut) = pool_and_cut(&row)?;
            after = (pool.tenant.to_string(), pool.kind.as_str().to_owned(), pool.name.to_string());
            if pool.kind == PoolKind::Subscriber && pool.tenant != plans.0 {
                plans = (pool.tenant.clone(), plan_history(&mut tx, &pool.tenant).await?);
            }
            let begun = Replay::new(pool.clone(), cut, &plans.1).with_clock_repairs(repairs.clone());
            let begun = begun.with_version_floors(&version_floors);
            match replay(&mut tx, pool, begun).await {
                Ok(proven) => proof.add(proven),
                Err(Halt::Broken(finding)) => return Ok(Verdict::Broken(finding)),
                Err(Halt::NoAnswer(error)) => return Err(error),
            }
            progress(&proof);
        }
        Ok(Verdict::Proven(proof))
    }
}

/// The reason why the replay of a pool stopped.
enum Halt {
    Broken(Box<Finding>),
    NoAnswer(Error),
}

impl From<Finding> for Halt {
    fn from(finding: Finding) -> Self {
        Self::Broken(Box::new(finding))
    }
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Self::NoAnswer(error)
    }
}

impl From<sqlx::Error> for Halt {
    fn from(error: sqlx::Error) -> Self {
        Self::NoAnswer(error.into())
    }
}

pub(super) async fn plan_history(tx: &mut Tx, tenant: &TenantId) -> Result<PlanHistory, Error> {
    let mut history = PlanHistory::default();
    let mut records = tx.query(include_str!("../../sql/plan_records.sql")).bind(tenant.as_str()).fetch();
    while let Some(row) = records.try_next().await? {
        let fields = Fields(&row);
        let (version, limit) = (fields.whole("limit_version")?, fields.small("limit_seats")?);
        history.record(fields.value("pool_id")?, version, limit);
    }
    Ok(history)
}

/// Returns for each repair of registry time the id of the newest record before the repair.
async fn clock_repairs(tx: &mut Tx) -> Result<Vec<u64>, Error> {
    let rows = tx.query(include_str!("../../sql/clock_repairs.sql")).fetch_all().await?;
    rows.iter().map(|row| Ok(ClockRepair::read(row)?.audit_head)).collect()
}

async fn replay(tx: &mut Tx, pool: PoolId, mut replay: Replay<'_>) -> Result<Proof, Halt> {
    let mut records = tx.query(include_str!("../../sql/pool_records.sql")).bind_pool(&pool).fetch();
    while let Some(row) = records.try_next().await? {
        replay.record(&AuditRecord::read(&row)?)?;
    }
    drop(records);
    for (stream, head) in heads(tx, &pool).await? {
        replay.head(stream, head)?;
    }
    let mut sessions = tx.query(include_str!("../../sql/pool_sessions.sql")).bind_pool(&pool).fetch();
    while let Some(row) = sessions.try_next().await? {
        replay.session(&SessionRecord::read(&row)?)?;
    }
    Ok(replay.finish()?)
}

/// Returns the head of each stream with heads; 0 without a known head.
async fn heads(tx: &mut Tx, pool: &PoolId) -> Result<[(Stream, u64); 3], Error> {
    let mut heads = [(Stream::Entitlement, 0), (Stream::Plan, 0), (Stream::Session, 0)];
    for row in tx.query(include_str!("../../sql/pool_heads.sql")).bind_pool(pool).fetch_all().await? {
        let fields = Fields(&row);
        let (stream, seq) = (fields.named("stream")?, fields.whole("seq")?);
        if let Some((_, head)) = heads.iter_mut().find(|(its, _)| *its == stream) {
            *head = seq;
        }
    }
    Ok(heads)
}

async fn next_pool(tx: &mut Tx, after: &(String, String, String)) -> Result<Option<Row>, Error> {
    let (tenant, kind, pool) = after;
    let next = tx
        .query(include_str!("../../sql/next_pool.sql"))
        .bind(tenant)
        .bind(kind)
        .bind(pool)
        .fetch_optional()
        .await?;
    Ok(next)
}

fn pool_and_cut(row: &Row) -> Result<(PoolId, Option<Cut>), Error> {
    let fields = Fields(row);
    let cut = match (fields.number_maybe("cut_seq")?, fields.number_maybe("cut_live")?) {
        (Some(seq), Some(live)) => Some(Cut { seq, live }),
        _ => None,
    };
    Ok((fields.pool()?, cut))
}
