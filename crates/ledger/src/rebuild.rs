//! State read by a registry that starts empty: live sessions, the pools' last event numbers, the latest time.

use std::pin::Pin;

use chrono::{DateTime, Utc};
use futures_util::stream::{self, Peekable, StreamExt as _};
use futures_util::{Stream, TryStreamExt as _};
use seatkeeper_core::{Bucket, Holder, PoolId, RegistryTime, Session, UserId, Users};

use crate::database::{Query, Row};
use crate::row::Fields;
use crate::{Error, Ledger, times};

/// A pool with live sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivePool {
    /// The pool.
    pub pool: PoolId,
    /// The number of the pool's last event.
    pub seq: u64,
    /// The live sessions, each with the last flushed heartbeat and TTL. Only the first user of a shared
    /// session is on record.
    pub sessions: Vec<Session>,
}

impl Ledger {
    /// Returns the latest registry time on record, if any. Reads every live session.
    pub async fn last_time(&self) -> Result<Option<RegistryTime>, Error> {
        let heartbeat = self.latest(include_str!("../sql/last_heartbeat.sql")).await?;
        Ok(self.last_record_time().await?.max(heartbeat))
    }

    /// Returns the latest registry time on record apart from heartbeats of live sessions, if any.
    pub async fn last_record_time(&self) -> Result<Option<RegistryTime>, Error> {
        self.latest(include_str!("../sql/last_record_time.sql")).await
    }

    async fn latest(&self, sql: &'static str) -> Result<Option<RegistryTime>, Error> {
        let latest: Option<DateTime<Utc>> = self.readers().query(sql).scalar().await?;
        Ok(latest.map(times::from_stored))
    }

    /// Returns the number of the pool's last event; 0 without events.
    pub async fn pool_seq(&self, pool: &PoolId) -> Result<u64, Error> {
        let query = self.readers().query(include_str!("../sql/pool_seq.sql"));
        let seq: i64 = query.bind_pool(pool).scalar().await?;
        Ok(seq.unsigned_abs())
    }

    /// Returns the number of a pool's last event and the pool's live sessions, read in one snapshot.
    pub async fn pool_head(&self, pool: &PoolId) -> Result<LivePool, Error> {
        let mut tx = self.readers().begin_snapshot().await?;
        let seq: i64 = tx.query(include_str!("../sql/pool_seq.sql")).bind_pool(pool).scalar().await?;
        let live = tx.query(include_str!("../sql/live_sessions_of.sql")).bind_pool(pool);
        let rows = live.bind(i64::MAX).fetch_all().await?;
        let sessions = rows.iter().map(|row| live_session(&Fields(row))).collect::<Result<_, _>>()?;
        Ok(LivePool { pool: pool.clone(), seq: seq.unsigned_abs(), sessions })
    }

    /// Streams every pool with live sessions. One pool is in memory at a time, and the stream occupies a connection.
    pub fn live_sessions(&self) -> impl Stream<Item = Result<LivePool, Error>> + Send + '_ {
        pools_of(self.readers().query(include_str!("../sql/live_sessions.sql")))
    }

    /// Returns every capacity with a live session.
    pub async fn live_capacities(&self) -> Result<Vec<LivePool>, Error> {
        pools_of(self.readers().query(include_str!("../sql/live_capacities.sql"))).try_collect().await
    }

    /// Returns every pool with live sessions in one bucket.
    ///
    /// The result is no stream: a stream would occupy a connection while its caller asks the ledger for the terms of a
    /// pool, and as many callers as connections would wait for each other.
    pub async fn live_sessions_in(&self, bucket: Bucket) -> Result<Vec<LivePool>, Error> {
        let byte = bucket.number().to_be_bytes()[1];
        let query = self.readers().query(include_str!("../sql/live_sessions_in.sql")).bind(vec![byte]);
        pools_of(query).try_collect().await
    }
}

/// Groups the rows of a statement into pools.
fn pools_of(query: Query<'_>) -> impl Stream<Item = Result<LivePool, Error>> + Send + '_ {
    let rows = query.fetch().map(|row| LiveRow::read(&row?)).boxed();
    stream::try_unfold(Box::pin(rows.peekable()), next_pool)
}

struct LiveRow {
    pool: PoolId,
    seq: u64,
    session: Session,
}

impl LiveRow {
    fn read(row: &Row) -> Result<Self, Error> {
        let fields = Fields(row);
        let kept = fields.number_maybe::<u64>("seq")?.unwrap_or_default();
        let cut = fields.number_maybe("cut_seq")?.unwrap_or_default();
        Ok(Self { pool: fields.pool()?, seq: kept.max(cut), session: live_session(&fields)? })
    }
}

/// Reads the session in a row of `sessions`.
pub(crate) fn live_session(fields: &Fields<'_>) -> Result<Session, Error> {
    Ok(Session {
        id: fields.session_id("id")?,
        holder: Holder::new(fields.value::<&str>("holder")?),
        users: Users::one(UserId::new(fields.value::<&str>("user_id")?)),
        started: fields.time("started_at")?,
        last_heartbeat: fields.time("last_heartbeat_at")?,
        ttl: fields.span("ttl_ms")?,
        tier: fields.tier("tier")?,
    })
}

type Rows<S> = Pin<Box<Peekable<S>>>;

/// Takes the rows of one pool.
async fn next_pool<S>(mut rows: Rows<S>) -> Result<Option<(LivePool, Rows<S>)>, Error>
where
    S: Stream<Item = Result<LiveRow, Error>>,
{
    let Some(first) = rows.try_next().await? else {
        return Ok(None);
    };
    let mut pool = LivePool { pool: first.pool, seq: first.seq, sessions: vec![first.session] };
    while let Some(row) =
        rows.as_mut().next_if(|row| row.as_ref().map_or(true, |row| row.pool == pool.pool)).await
    {
        pool.sessions.push(row?.session);
    }
    Ok(Some((pool, rows)))
}
