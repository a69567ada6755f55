//! Sessions, live and ended.

use std::net::IpAddr;
use std::sync::Arc;

use sea_query::{Expr, ExprTrait as _, Order, Query, SelectStatement};
use seatkeeper_core::{
    Device, EndReason, Holder, Particulars, PoolId, PoolKind, RegistryTime, Session, SessionId, TenantId,
    UserId,
};

use crate::database::Row;
use crate::page::{Page, rows_for};
use crate::rebuild::live_session;
use crate::row::{Fields, stored_whole};
use crate::{Error, Ledger};

const COLUMNS: [&str; 18] = [
    "id",
    "tenant_id",
    "pool_kind",
    "pool_id",
    "holder",
    "user_id",
    "tier",
    "started_at",
    "last_heartbeat_at",
    "ttl_ms",
    "expires_at",
    "ended_at",
    "end_reason",
    "ip",
    "user_agent",
    "metadata",
    "device_type",
    "device_name",
];

/// True of exactly the sessions that are live.
const STANDS_AMONG_THE_LIVE: &str = "EXISTS (
    SELECT 1 FROM live_sessions AS l
    WHERE l.bucket = substr(sessions.id, 8, 1) AND l.session_id = sessions.id AND l.tenant_id = sessions.tenant_id
)";

/// A session as it is on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRecord {
    /// Its pool.
    pub pool: PoolId,
    /// The session. While it is live, its last heartbeat is the last that was flushed; of several
    /// users who share it, only the first is on record.
    pub session: Session,
    /// When it was over; of a live session, what it was told when it was admitted, for the registry
    /// alone knows how it stands now.
    pub expires: RegistryTime,
    /// Its end; none: it is live, as far as the record goes.
    pub ended: Option<SessionEnd>,
    /// What its client told when it was admitted.
    pub particulars: Particulars,
}

/// A session that was looked for by its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundSession {
    /// Its record.
    pub record: SessionRecord,
    /// A node admitted the session alone: the record is no part of the chain, and reaches as far as that node has told.
    pub is_alone: bool,
}

/// The end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionEnd {
    /// When it was ended.
    pub at: RegistryTime,
    /// Why.
    pub reason: EndReason,
}

/// A session that was admitted in another one's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Successor {
    /// Its name.
    pub id: SessionId,
    /// Its device, if devices hold the seats.
    pub device: Option<Device>,
}

impl Successor {
    fn read(row: &Row) -> Result<Self, Error> {
        let fields = Fields(row);
        Ok(Self { id: fields.session_id("session_id")?, device: fields.device()? })
    }
}

/// Which sessions to find: those that match every member that is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// The kind of their pool.
    pub pool_kind: Option<PoolKind>,
    /// The name of their pool.
    pub pool: Option<Arc<str>>,
    /// Who holds them; of a machine also its processes.
    pub holder: Option<Holder>,
    /// Who was admitted.
    pub user: Option<UserId>,
    /// The address they were admitted from.
    pub ip: Option<IpAddr>,
    /// Whether they are live.
    pub live: Option<bool>,
}

impl Ledger {
    /// Finds a session of any tenant by one query, live or ended, whoever admitted it; `None` if it never was, or is no longer
    /// kept.
    pub async fn find_session(&self, id: SessionId) -> Result<Option<FoundSession>, Error> {
        let query = self.readers().query(include_str!("../sql/find_session.sql"));
        let Some(row) = query.bind(id.as_uuid()).fetch_optional().await? else { return Ok(None) };
        let is_alone = Fields(&row).whole("is_alone")? > 0;
        Ok(Some(FoundSession { record: SessionRecord::read(&row)?, is_alone }))
    }

    /// A session of any tenant, live or ended; none if it never was, or is no longer kept.
    pub async fn session(&self, id: SessionId) -> Result<Option<SessionRecord>, Error> {
        let row = self
            .readers()
            .query(include_str!("../sql/session.sql"))
            .bind(id.as_uuid())
            .fetch_optional()
            .await?;
        row.as_ref().map(SessionRecord::read).transpose()
    }

    /// A pool's live sessions as they are on record, at most `max` of them, in no order.
    pub async fn live_sessions_of(&self, pool: &PoolId, max: usize) -> Result<Vec<SessionRecord>, Error> {
        let rows = self
            .readers()
            .query(include_str!("../sql/live_sessions_of.sql"))
            .bind(pool.tenant.as_str())
            .bind(pool.kind.as_str())
            .bind(&*pool.name)
            .bind(stored_whole(max as u64))
            .fetch_all()
            .await?;
        rows.iter().map(SessionRecord::read).collect()
    }

    /// The session that the end of `id` made room for, if it ended as evicted, superseded or upgraded; none
    /// if that is not on record any more.
    pub async fn successor(&self, id: SessionId) -> Result<Option<Successor>, Error> {
        let row = self
            .readers()
            .query(include_str!("../sql/admission_after_end.sql"))
            .bind(id.as_uuid())
            .fetch_optional()
            .await?;
        row.as_ref().map(Successor::read).transpose()
    }

    /// The tenant's sessions that match, the newest first, after the one named by `cursor`.
    pub async fn search_sessions(
        &self,
        tenant: &TenantId,
        filter: &SessionFilter,
        cursor: Option<SessionId>,
        limit: u32,
    ) -> Result<Page<SessionRecord, SessionId>, Error> {
        let statement = filter
            .select(tenant)
            .and_where_option(cursor.map(|after| Expr::col("id").lt(after.as_uuid())))
            .order_by("id", Order::Desc)
            .limit(rows_for(limit))
            .take();
        let rows = self.readers().select(&statement).fetch_all().await?;
        let sessions = rows.iter().map(SessionRecord::read).collect::<Result<_, _>>()?;
        Ok(Page::of(sessions, limit, |record: &SessionRecord| record.session.id))
    }
}

impl SessionFilter {
    fn select(&self, tenant: &TenantId) -> SelectStatement {
        // By its reason: by its time, SQLite would read all live sessions and sort them.
        let end_reason = || Expr::col("end_reason");
        let is = |column: &'static str, text: &str| Expr::col(column).eq(text);
        Query::select()
            .columns(COLUMNS)
            .from("sessions")
            .and_where(is("tenant_id", tenant.as_str()))
            .and_where_option(self.pool_kind.map(|kind| is("pool_kind", kind.as_str())))
            .and_where_option(self.pool.as_ref().map(|pool| is("pool_id", pool)))
            .and_where_option(self.holder.as_ref().map(held_by))
            .and_where_option(self.user.as_ref().map(|user| is("user_id", user.as_str())))
            .and_where_option(self.ip.map(|ip| is("ip", &ip.to_string())))
            .and_where_option(
                self.live.map(|live| if live { end_reason().is_null() } else { end_reason().is_not_null() }),
            )
            // PostgreSQL finds the few that are live among many that have ended where those stand apart.
            .and_where_option(self.live.filter(|live| *live).map(|_| Expr::cust(STANDS_AMONG_THE_LIVE)))
            .take()
    }
}

fn held_by(holder: &Holder) -> Expr {
    let column = || Expr::col("holder");
    let (from, before) = holder.processes();
    column().eq(holder.as_str()).or(column().gte(from).and(column().lt(before)))
}

impl SessionRecord {
    pub(crate) fn read(row: &Row) -> Result<Self, Error> {
        let fields = Fields(row);
        let end = (fields.time_maybe("ended_at")?, fields.named_maybe("end_reason")?);
        Ok(Self {
            pool: fields.pool()?,
            session: live_session(&fields)?,
            expires: fields.time("expires_at")?,
            ended: match end {
                (Some(at), Some(reason)) => Some(SessionEnd { at, reason }),
                _ => None,
            },
            particulars: Particulars {
                ip: fields.named_maybe("ip")?,
                user_agent: fields.value::<Option<&str>>("user_agent")?.map(Box::from),
                metadata: fields.value::<Option<&str>>("metadata")?.map(Box::from),
                device: fields.device()?,
            },
        })
    }
}
