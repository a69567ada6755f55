//! Lookup and search of sessions on record, live and ended.

use std::net::IpAddr;

use arcstr::ArcStr;
use sea_query::{Expr, ExprTrait as _, Order, Query, SelectStatement, UnionType};
use seatkeeper_core::{
    Device, EndReason, Holder, Particulars, PoolId, PoolKind, RegistryTime, Session, SessionId, TenantId,
    UserId,
};

use crate::database::Row;
use crate::page::{Page, rows_for};
use crate::rebuild::live_session;
use crate::row::{Fields, stored_whole};
use crate::{Error, Ledger};

const COLUMNS: &str = "id, tenant_id, pool_kind, pool_id, holder, user_id, tier, started_at, last_heartbeat_at, ttl_ms, \
    expires_at, ended_at, end_reason, ip, user_agent, metadata, device_type, device_name";

/// A condition true for exactly the live sessions.
const STANDS_AMONG_THE_LIVE: &str = "EXISTS (
    SELECT 1 FROM live_sessions AS l
    WHERE l.bucket = substr(sessions.id, 8, 1) AND l.session_id = sessions.id AND l.tenant_id = sessions.tenant_id
)";

/// A session on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRecord {
    /// The session's pool.
    pub pool: PoolId,
    /// The session. A live session has its last flushed heartbeat. Only the first user of a shared session is
    /// on record.
    pub session: Session,
    /// The end of the session's life. For a live session, the expiry of its admission: only the registry
    /// knows the current expiry.
    pub expires: RegistryTime,
    /// The session's end; `None` while the session is live on record.
    pub ended: Option<SessionEnd>,
    /// Details from the client at the admission.
    pub particulars: Particulars,
}

/// A session found by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundSession {
    /// The session's record.
    pub record: SessionRecord,
    /// A node admitted the session alone. The record is not part of the pool's chain, and ends with the
    /// node's last report.
    pub is_node_local: bool,
}

/// The end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionEnd {
    /// The time of the end.
    pub at: RegistryTime,
    /// The reason of the end.
    pub reason: EndReason,
}

/// A session admitted in the place of an ended session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Successor {
    /// The session's id.
    pub id: SessionId,
    /// The device, if devices hold the pool's seats.
    pub device: Option<Device>,
}

impl Successor {
    fn read(row: &Row) -> Result<Self, Error> {
        let fields = Fields(row);
        Ok(Self { id: fields.session_id("session_id")?, device: fields.device()? })
    }
}

/// A filter for sessions. A session matches if every given field matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// The kind of the pool.
    pub pool_kind: Option<PoolKind>,
    /// The name of the pool.
    pub pool: Option<ArcStr>,
    /// The holder. A machine also matches the machine's processes.
    pub holder: Option<Holder>,
    /// The admitted user.
    pub user: Option<UserId>,
    /// The client's address at the admission.
    pub ip: Option<IpAddr>,
    /// `true` for live sessions, `false` for ended sessions.
    pub live: Option<bool>,
}

impl Ledger {
    /// Finds a session of any tenant by id in one query, live or ended, admitted by a registry or by a node
    /// alone. `None` if the session never existed or was purged.
    pub async fn find_session(&self, id: SessionId) -> Result<Option<FoundSession>, Error> {
        let query = self.readers().query(include_str!("../sql/find_session.sql"));
        let Some(row) = query.bind(id.as_uuid()).fetch_optional().await? else { return Ok(None) };
        let is_node_local = Fields(&row).whole("is_alone")? > 0;
        Ok(Some(FoundSession { record: SessionRecord::read(&row)?, is_node_local }))
    }

    /// Returns a session of any tenant admitted by a registry, live or ended. `None` if the session never existed
    /// or was purged.
    pub async fn session(&self, id: SessionId) -> Result<Option<SessionRecord>, Error> {
        let found = self.find_session(id).await?;
        Ok(found.filter(|found| !found.is_node_local).map(|found| found.record))
    }

    /// Returns at most `max` of a pool's live sessions on record, in no order.
    pub async fn live_sessions_of(&self, pool: &PoolId, max: usize) -> Result<Vec<SessionRecord>, Error> {
        let rows = self
            .readers()
            .query(include_str!("../sql/live_sessions_of.sql"))
            .bind_pool(pool)
            .bind(stored_whole(max as u64))
            .fetch_all()
            .await?;
        rows.iter().map(SessionRecord::read).collect()
    }

    /// Returns the session admitted in the place of `id`, if `id` was evicted, superseded or upgraded. `None`
    /// once the record is purged.
    pub async fn successor(&self, id: SessionId) -> Result<Option<Successor>, Error> {
        let row = self
            .readers()
            .query(include_str!("../sql/admission_after_end.sql"))
            .bind(id.as_uuid())
            .fetch_optional()
            .await?;
        row.as_ref().map(Successor::read).transpose()
    }

    /// Returns a page of the tenant's matching sessions, newest first, after session `cursor`.
    pub async fn search_sessions(
        &self,
        tenant: &TenantId,
        filter: &SessionFilter,
        cursor: Option<SessionId>,
        limit: u32,
    ) -> Result<Page<SessionRecord, SessionId>, Error> {
        let statement = filter.select_page(tenant, cursor, limit);
        let rows = self.readers().select(&statement).fetch_all().await?;
        let sessions = rows.iter().map(SessionRecord::read).collect::<Result<_, _>>()?;
        Ok(Page::new(sessions, limit, |record: &SessionRecord| record.session.id))
    }
}

impl SessionFilter {
    /// Selects the tenant's matching sessions, newest first, after session `cursor`. A pool's name without a kind becomes
    /// a union over the kinds, because the kind precedes the name in the index of pools. Each part comes in the order of
    /// the index, so the databases merge the parts without a sort.
    fn select_page(&self, tenant: &TenantId, cursor: Option<SessionId>, limit: u32) -> SelectStatement {
        let of_kind = |kind| self.select_of_kind(tenant, kind, cursor);
        let mut statement = if self.pool.is_some() && self.pool_kind.is_none() {
            let [mut first, others @ ..] = PoolKind::ALL.map(|kind| of_kind(Some(kind)));
            first.unions(others.map(|other| (UnionType::All, other))).take()
        } else {
            of_kind(self.pool_kind)
        };
        statement.order_by("id", Order::Desc).limit(rows_for(limit)).take()
    }

    /// Selects the tenant's matching sessions of a kind, or of every kind, after session `cursor`, in no order.
    fn select_of_kind(
        &self,
        tenant: &TenantId,
        kind: Option<PoolKind>,
        cursor: Option<SessionId>,
    ) -> SelectStatement {
        // Liveness is tested by `end_reason`: for `ended_at`, SQLite would read and sort all live sessions.
        let end_reason = || Expr::col("end_reason");
        let is = |column: &'static str, text: &str| Expr::col(column).eq(text);
        Query::select()
            .expr(Expr::cust(COLUMNS))
            .from("sessions")
            .and_where(is("tenant_id", tenant.as_str()))
            .and_where_option(kind.map(|kind| is("pool_kind", kind.as_str())))
            .and_where_option(self.pool.as_ref().map(|pool| is("pool_id", pool)))
            .and_where_option(cursor.map(|after| Expr::col("id").lt(after.as_uuid())))
            .and_where_option(self.holder.as_ref().map(held_by))
            .and_where_option(self.user.as_ref().map(|user| is("user_id", user.as_str())))
            .and_where_option(self.ip.map(|ip| is("ip", &ip.to_string())))
            .and_where_option(
                self.live.map(|live| if live { end_reason().is_null() } else { end_reason().is_not_null() }),
            )
            // PostgreSQL finds a few live sessions among many ended sessions by the indexes of `live_sessions`.
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

#[cfg(test)]
mod tests;
