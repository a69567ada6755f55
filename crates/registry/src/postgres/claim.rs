//! Claims, and the opening of pools.

use async_trait::async_trait;
use seatkeeper_core::{LoadBound, PoolId, Session, SessionId, Terms};
use sqlx::PgConnection;

use super::PostgresRegistry;
use super::connect::begin_long;
use super::fault::Fault;
use super::limit::run;
use super::read_pool::{Locking, PoolSnapshot, Target, read_pool};
use super::row::time;
use super::step::CALL_TIMEOUT;
use super::write::{Change, Events, Fate};
use crate::Error;
use crate::contract::{Admission, Claimed, ClosedAt, Receipt, Request};
use crate::open_pool::{OpenPool, is_recent};
use crate::rebuild::Filling;

#[async_trait]
impl Admission for PostgresRegistry {
    async fn open(
        &self,
        pool: &PoolId,
        seq: u64,
        terms: Option<Terms>,
        live: Vec<Session>,
    ) -> Result<(), Error> {
        self.open_closed(None, Filling { pool, seq, terms, live: &live }).await
    }

    async fn closed_at(&self, pool: &PoolId) -> Result<Option<ClosedAt>, Error> {
        let connection = self.connection().await?;
        let epoch = self.section.receipt_epoch().resolve(self.section.epoch(pool.bucket()));
        let read = sqlx::query_scalar(include_str!("sql/closed_at.sql"))
            .bind(self.section.number_of(pool.bucket()))
            .bind(pool.kind.as_str())
            .bind(pool.tenant.as_str())
            .bind(&*pool.name);
        let closed_at: Option<i64> =
            run(connection, async |connection| read.fetch_one(connection).await).await??;
        Ok(closed_at.map(|closed_at| ClosedAt { time: time(closed_at), epoch }))
    }

    async fn open_if_recent(
        &self,
        closed_at: ClosedAt,
        pool: &PoolId,
        seq: u64,
        terms: Option<Terms>,
        live: Vec<Session>,
    ) -> Result<(), Error> {
        self.open_closed(Some(closed_at), Filling { pool, seq, terms, live: &live }).await
    }

    async fn claim(&self, request: Request<'_>) -> Result<Claimed, Error> {
        let Request { pool, claim, policy, .. } = request;
        let asked = [claim.session, claim.replace.map(|named| named.session)];
        let target = Target::Pool { id: pool, holder: Some(&claim.holder), asked };
        loop {
            self.room_in_journal(pool.bucket()).await?;
            let made = self.step(
                target,
                |seen| LoadBound::to_admit(seen.terms, policy, seen.live, seen.now),
                |open, now, events| {
                    let fresh = SessionId::mint(now, pool.bucket(), self.region, rand::random());
                    let (answer, _) = open.claim(request, fresh, now, events);
                    (answer, open.pool.live(), open.limit())
                },
            );
            let made = made.await?.ok_or(Error::PoolNotOpen)?;
            if let (Some(answer), live, limit) = made.value {
                return Ok(Claimed { answer, live, limit, receipt: made.receipt });
            }
        }
    }
}

impl PostgresRegistry {
    /// Opens a pool unless it is open. With `closed_at`, does nothing if the record is not recent: see
    /// [`Admission::open_if_recent`].
    async fn open_closed(&self, closed_at: Option<ClosedAt>, pool: Filling<'_>) -> Result<(), Error> {
        let opening = async {
            let _turn = self.turn(pool.pool.bucket()).await;
            let connection = self.connection().await?;
            let mut transaction = begin_long(connection).await?;
            let target = Target::pool(pool.pool);
            let seen =
                read_pool(&mut transaction, &self.section, Locking::With, target, |_| LoadBound::ONE_SESSION)
                    .await?;
            self.serves(seen.bucket, seen.epoch, seen.serving)?;
            // The bucket is locked: a node that freezes from here on loses the transaction, or keeps the pool closed.
            if closed_at.is_some_and(|closed_at| {
                closed_at.epoch != seen.receipt_epoch || !is_recent(closed_at.time, seen.now)
            }) {
                return Ok(transaction.rollback().await?);
            }
            let (receipt, events) = open_in(&mut transaction, &seen, pool).await?;
            transaction.commit().await.map_err(Fault::of_commit)?;
            self.backlog.told(receipt, events);
            Ok::<_, Fault>(())
        };
        Ok(tokio::time::timeout(CALL_TIMEOUT, opening).await??)
    }
}

/// Opens a pool unless it is open. Returns the receipt of the last event, and the number of events.
pub(super) async fn open_in(
    transaction: &mut PgConnection,
    seen: &PoolSnapshot,
    pool: Filling<'_>,
) -> Result<(Receipt, usize), Fault> {
    let mut events = Events::of_step(seen);
    if seen.open.is_some() {
        return Ok((seen.place(seen.position), 0));
    }
    let Filling { pool, seq, terms, live } = pool;
    let mut open = OpenPool::restored(pool.clone(), seq, terms, live.to_vec(), seen.now);
    open.settle(seen.now, &mut events);
    open.become_due(seen.now);
    let change = Change { seen, before: None, open: &open, events: &events, fate: Fate::Open };
    let receipt = change.write(transaction).await?;
    Ok((receipt, events.count()))
}
