//! Rows of the database, converted to types of `core`.

use seatkeeper_core::{
    DenialFold, LatestHeartbeat, Pool, PoolId, RegistryTime, Seats, Session, Span, Standing, Terms, Tier,
    UserId,
};
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{FromRow, Row as _};
use uuid::Uuid;

use super::from_row::from_row;
use super::unreadable::Unreadable;
use crate::contract::Live;
use crate::open_pool::OpenPool;

/// Converts a number to PostgreSQL's `bigint`, saturated. Meaningful values are far smaller.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts a number back after [`signed`].
pub(super) fn unsigned(number: i64) -> u64 {
    number.max(0).cast_unsigned()
}

pub(super) fn time(millis: i64) -> RegistryTime {
    RegistryTime::from_millis(unsigned(millis))
}

fn span(millis: i64) -> Span {
    Span::from_millis(unsigned(millis))
}

/// A row of `registry.seen`.
pub(super) struct SeenRow {
    pub(super) epoch: i64,
    pub(super) serving: bool,
    pub(super) fence: i64,
    pub(super) position: i64,
    pub(super) acknowledged: i64,
    pub(super) now: i64,
    pub(super) behind: i64,
    pub(super) pool: PoolRow,
    pub(super) session: SeenSession,
}

impl<'r> FromRow<'r, PgRow> for SeenRow {
    fn from_row(row: &'r PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            epoch: row.try_get("epoch")?,
            serving: row.try_get("serving")?,
            fence: row.try_get("fence")?,
            position: row.try_get("position")?,
            acknowledged: row.try_get("acknowledged")?,
            now: row.try_get("now")?,
            behind: row.try_get("behind")?,
            pool: PoolRow::from_row(row)?,
            session: SeenSession::from_row(row)?,
        })
    }
}

from_row! {
    /// The pool's columns of a row of `registry.seen`; null if the pool is not open.
    pub(super) struct PoolRow {
        pub(super) pool: Option<i64>,
        kind: Option<String>,
        tenant: Option<String>,
        name: Option<String>,
        pub(super) revision: Option<i64>,
        seq: Option<i64>,
        last_event: Option<i64>,
        pub(super) live: Option<i32>,
        terms_version: Option<i64>,
        seats: Option<i64>,
        ttl: Option<i64>,
        ends_at: Option<i64>,
        closed: Option<bool>,
        due: Option<i64>,
        empty_since: Option<i64>,
        denials: Option<Json<DenialFold>>,
    }
}

from_row! {
    /// The session's columns of a row of `registry.seen`; null if there is none.
    pub(super) struct SeenSession {
        id: Option<Uuid>,
        holder: Option<String>,
        users: Option<Vec<String>>,
        started: Option<i64>,
        last_heartbeat: Option<i64>,
        session_ttl: Option<i64>,
        tier: Option<i16>,
        pub(super) is_stalest: Option<bool>,
    }
}

impl PoolRow {
    pub(super) fn terms(&self) -> Option<Terms> {
        Some(Terms {
            version: unsigned(self.terms_version?),
            limit: Seats(u32::try_from(self.seats?).unwrap_or(u32::MAX)),
            ttl: span(self.ttl?),
            ends_at: self.ends_at.map(time),
            standing: if self.closed? { Standing::Closed } else { Standing::Open },
        })
    }

    /// Builds the pool with the loaded sessions. Returns `None` if the pool is not open.
    pub(super) fn open(self, pool: Pool) -> Result<Option<OpenPool>, Unreadable> {
        let (Some(kind), Some(tenant), Some(name)) = (&self.kind, &self.tenant, &self.name) else {
            return Ok(None);
        };
        let kind = kind.parse()?;
        Ok(Some(OpenPool {
            id: PoolId::new(kind, tenant.as_str().into(), name.as_str()),
            pool,
            due: self.due.map(time),
            seq: self.seq.map_or(0, unsigned),
            empty_since: self.empty_since.map(time),
            last_event: self.last_event.map_or(0, unsigned),
            denials: self.denials.map(|Json(fold)| Box::new(fold)),
        }))
    }
}

impl SeenSession {
    pub(super) fn read(self) -> Result<Option<Session>, Unreadable> {
        let Self { id, holder, users, started, last_heartbeat, session_ttl, tier, is_stalest: _ } = self;
        match (id, holder, users, started, last_heartbeat, session_ttl, tier) {
            (
                Some(id),
                Some(holder),
                Some(users),
                Some(started),
                Some(last_heartbeat),
                Some(ttl),
                Some(tier),
            ) => SessionRow { id, holder, users, started, last_heartbeat, ttl, tier }.read().map(Some),
            _ => Ok(None),
        }
    }
}

from_row! {
    /// A row of a session alone.
    pub(super) struct SessionRow {
        id: Uuid,
        holder: String,
        users: Vec<String>,
        started: i64,
        last_heartbeat: i64,
        ttl: i64,
        tier: i16,
    }
}

impl SessionRow {
    fn read(self) -> Result<Session, Unreadable> {
        Ok(Session {
            id: self.id.try_into()?,
            holder: self.holder.as_str().into(),
            users: self.users.into_iter().map(UserId::new).collect::<Vec<_>>().try_into()?,
            started: time(self.started),
            last_heartbeat: time(self.last_heartbeat),
            ttl: span(self.ttl),
            tier: Tier(u8::try_from(self.tier).unwrap_or_default()),
        })
    }
}

/// A row of a session with columns of its pool, at a time.
pub(super) struct LiveRow {
    session: SessionRow,
    kind: String,
    tenant: String,
    name: String,
    ends_at: Option<i64>,
    now: i64,
}

impl<'r> FromRow<'r, PgRow> for LiveRow {
    fn from_row(row: &'r PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            session: SessionRow::from_row(row)?,
            kind: row.try_get("kind")?,
            tenant: row.try_get("tenant")?,
            name: row.try_get("name")?,
            ends_at: row.try_get("ends_at")?,
            now: row.try_get("now")?,
        })
    }
}

impl LiveRow {
    pub(super) fn read(self) -> Result<Live, Unreadable> {
        let kind = self.kind.parse()?;
        let session = self.session.read()?;
        let silent = session.silent_until();
        let expires = self.ends_at.map(time).map_or(silent, |ends_at| ends_at.min(silent));
        Ok(Live {
            session,
            pool: PoolId::new(kind, self.tenant.as_str().into(), self.name.as_str()),
            expires,
            expires_in: expires.since(time(self.now)),
        })
    }
}

/// A row with the bucket's epoch and serving state, and further columns.
pub(super) struct Served<T> {
    pub(super) epoch: u64,
    pub(super) serving: bool,
    pub(super) rest: T,
}

impl<'r, T: FromRow<'r, PgRow>> FromRow<'r, PgRow> for Served<T> {
    fn from_row(row: &'r PgRow) -> Result<Self, sqlx::Error> {
        let epoch: i64 = row.try_get("epoch")?;
        Ok(Self { epoch: unsigned(epoch), serving: row.try_get("serving")?, rest: T::from_row(row)? })
    }
}

/// Columns of a session; null if the session does not exist.
pub(super) struct FoundRow(pub(super) Option<LiveRow>);

impl<'r> FromRow<'r, PgRow> for FoundRow {
    fn from_row(row: &'r PgRow) -> Result<Self, sqlx::Error> {
        let id: Option<Uuid> = row.try_get("id")?;
        id.map(|_| LiveRow::from_row(row)).transpose().map(Self)
    }
}

from_row! {
    /// A row of a recent heartbeat.
    pub(super) struct RenewedRow {
        id: Uuid,
        last_heartbeat: i64,
        ttl: i64,
    }
}

impl RenewedRow {
    pub(super) fn read(self) -> Result<LatestHeartbeat, Unreadable> {
        let (at, ttl) = (time(self.last_heartbeat), Span::from_millis(self.ttl.unsigned_abs()));
        Ok(LatestHeartbeat { session: self.id.try_into()?, at, ttl })
    }
}
