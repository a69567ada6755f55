//! Search of audit records, with filters and cursor pages.

use arcstr::ArcStr;
use sea_query::{Expr, ExprTrait as _, Order, Query, SelectStatement};
use seatkeeper_core::{PoolKind, RegistryTime, SessionId, TenantId};

use super::{Action, AuditRecord, Entry};
use crate::page::{Page, rows_for};
use crate::row::stored_whole;
use crate::{Error, Ledger, times};

/// A filter for audit records. A record matches if every given field matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// The action.
    pub action: Option<Action>,
    /// The kind of the pool.
    pub pool_kind: Option<PoolKind>,
    /// The name of the pool.
    pub pool: Option<ArcStr>,
    /// The session begun or ended.
    pub session: Option<SessionId>,
    /// The earliest time, inclusive.
    pub from: Option<RegistryTime>,
    /// The latest time, exclusive.
    pub to: Option<RegistryTime>,
}

impl Ledger {
    /// Returns a page of the tenant's matching records, newest first, after the record with id `cursor`.
    pub async fn audit(
        &self,
        tenant: &TenantId,
        filter: &AuditFilter,
        cursor: Option<u64>,
        limit: u32,
    ) -> Result<Page<AuditRecord, u64>, Error> {
        let statement = filter.select_page(tenant, cursor, limit);
        let rows = self.readers().select(&statement).fetch_all().await?;
        let records = rows.iter().map(AuditRecord::read).collect::<Result<_, _>>()?;
        Ok(Page::new(records, limit, |record: &AuditRecord| record.id))
    }
}

impl AuditFilter {
    /// Selects the tenant's matching records, newest first, after the record with id `cursor`.
    fn select_page(&self, tenant: &TenantId, cursor: Option<u64>, limit: u32) -> SelectStatement {
        let is = |column: &'static str, text: &str| Expr::col(column).eq(text);
        let at = || Expr::col("at");
        // Always true. PostgreSQL needs the condition to use the partial index of a tenant's records.
        let of_tenant = Expr::cust("id > 0");
        Query::select()
            .column("id")
            .columns(Entry::COLUMNS.iter().copied())
            .from("audit_log")
            .and_where(is("tenant_id", tenant.as_str()))
            .and_where(of_tenant)
            .and_where_option(self.action.map(|action| is("action", action.as_str())))
            .and_where_option(self.pool_kind.map(|kind| is("pool_kind", kind.as_str())))
            .and_where_option(
                self.pool.as_ref().map(|pool| is_among(ids_of_pool(tenant, self.pool_kind, pool))),
            )
            .and_where_option(self.session.map(|id| is_among(ids_of_session(id))))
            .and_where_option(self.from.map(|from| at().gte(times::stored(from))))
            .and_where_option(self.to.map(|to| at().lt(times::stored(to))))
            .and_where_option(cursor.map(|after| Expr::col("id").lt(stored_whole(after))))
            .order_by("id", Order::Desc)
            .limit(rows_for(limit))
            .take()
    }
}

/// Returns the condition that a record's id is among `ids`. SQLite would walk the tenant's whole log in the order of ids
/// for a plain condition on a pool or a session. The subquery makes both databases read the ids from an index first.
fn is_among(ids: SelectStatement) -> Expr {
    Expr::col("id").in_subquery(ids)
}

/// Selects the ids of a pool's records from the index of pools, in which the kind precedes the name. Without a kind, the
/// pools of this name of every kind count.
fn ids_of_pool(tenant: &TenantId, kind: Option<PoolKind>, pool: &str) -> SelectStatement {
    let kinds: &[PoolKind] = match &kind {
        Some(kind) => std::slice::from_ref(kind),
        None => &PoolKind::ALL,
    };
    Query::select()
        .column("id")
        .from("audit_log")
        .and_where(Expr::col("tenant_id").eq(tenant.as_str()))
        .and_where(Expr::col("pool_kind").is_in(kinds.iter().map(|kind| kind.as_str())))
        .and_where(Expr::col("pool_id").eq(pool))
        .take()
}

/// Selects the ids of the records that name a session.
fn ids_of_session(session: SessionId) -> SelectStatement {
    Query::select()
        .column("id")
        .from("audit_log")
        .and_where(Expr::col("session_id").eq(session.as_uuid()))
        .take()
}

#[cfg(test)]
mod tests;
