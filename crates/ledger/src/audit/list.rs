//! Records, filtered and a page at a time.

use std::sync::Arc;

use sea_query::{Expr, ExprTrait as _, Order, Query, SelectStatement};
use seatkeeper_core::{PoolKind, RegistryTime, SessionId, TenantId};

use super::{Action, AuditRecord};
use crate::page::{Page, rows_for};
use crate::row::stored_whole;
use crate::{Error, Ledger, times};

const COLUMNS: [&str; 30] = [
    "id",
    "at",
    "tenant_id",
    "pool_kind",
    "pool_id",
    "stream",
    "seq",
    "epoch",
    "action",
    "session_id",
    "holder",
    "actor",
    "request_id",
    "reason",
    "limit_seats",
    "limit_version",
    "live",
    "count",
    "folded",
    "user_id",
    "tier",
    "ip",
    "user_agent",
    "metadata",
    "device_type",
    "device_name",
    "ttl_ms",
    "last_heartbeat_at",
    "expires_at",
    "detail",
];

/// Which records to find: those that match every member that is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// What happened.
    pub action: Option<Action>,
    /// The kind of the pool.
    pub pool_kind: Option<PoolKind>,
    /// The name of the pool.
    pub pool: Option<Arc<str>>,
    /// The session that began or ended.
    pub session: Option<SessionId>,
    /// The first time that matches.
    pub from: Option<RegistryTime>,
    /// The first time after it that does not match.
    pub to: Option<RegistryTime>,
}

impl Ledger {
    /// The tenant's records that match, the newest first, after the one with id `cursor`.
    pub async fn audit(
        &self,
        tenant: &TenantId,
        filter: &AuditFilter,
        cursor: Option<u64>,
        limit: u32,
    ) -> Result<Page<AuditRecord, u64>, Error> {
        let statement = filter
            .select(tenant)
            .and_where_option(cursor.map(|after| Expr::col("id").lt(stored_whole(after))))
            .order_by("id", Order::Desc)
            .limit(rows_for(limit))
            .take();
        let rows = self.readers().select(&statement).fetch_all().await?;
        let records = rows.iter().map(AuditRecord::read).collect::<Result<_, _>>()?;
        Ok(Page::of(records, limit, |record: &AuditRecord| record.id))
    }
}

impl AuditFilter {
    fn select(&self, tenant: &TenantId) -> SelectStatement {
        let is = |column: &'static str, text: &str| Expr::col(column).eq(text);
        let at = || Expr::col("at");
        // Holds anyway: the words by which PostgreSQL knows that the index of a tenant's records will do.
        let of_tenant = Expr::cust("id > 0");
        Query::select()
            .columns(COLUMNS)
            .from("audit_log")
            .and_where(is("tenant_id", tenant.as_str()))
            .and_where(of_tenant)
            .and_where_option(self.action.map(|action| is("action", action.as_str())))
            .and_where_option(self.pool_kind.map(|kind| is("pool_kind", kind.as_str())))
            .and_where_option(self.pool.as_ref().map(|pool| is("pool_id", pool)))
            .and_where_option(self.session.map(|id| Expr::col("session_id").eq(id.as_uuid())))
            .and_where_option(self.from.map(|from| at().gte(times::stored(from))))
            .and_where_option(self.to.map(|to| at().lt(times::stored(to))))
            .take()
    }
}
