//! Lookup and listing of plans.

use sea_query::{Expr, ExprTrait as _, Order, Query};
use seatkeeper_core::{RegistryTime, TenantId};

use super::plan::BUILT_IN;
use super::{Plan, PlanName, PlanStatus};
use crate::database::Tx;
use crate::page::{Page, rows_for};
use crate::{Error, Ledger, tenants};

const COLUMNS: &str = "tenant_id, name, device_limit, price_cents, when_full, ttl_seconds, group_members_max, \
    group_scope, group_same_content, status, version, created_at, updated_at";

impl Ledger {
    /// Returns the tenant's plan of a name. Asking for a built-in plan adds an unknown tenant, as of `now`.
    pub async fn plan(
        &self,
        tenant: &TenantId,
        name: &PlanName,
        now: RegistryTime,
    ) -> Result<Option<Plan>, Error> {
        let found = self.find_plan(tenant, name).await?;
        if found.is_some() || BUILT_IN.iter().all(|(built_in, _)| *built_in != name.as_str()) {
            return Ok(found);
        }
        self.note_tenant(tenant, now).await?;
        self.find_plan(tenant, name).await
    }

    /// Returns a page of the tenant's plans, ordered by name, after plan `cursor`. An unknown tenant is
    /// added, as of `now`.
    pub async fn list_plans(
        &self,
        tenant: &TenantId,
        status: Option<PlanStatus>,
        now: RegistryTime,
        cursor: Option<&PlanName>,
        limit: u32,
    ) -> Result<Page<Plan, PlanName>, Error> {
        let page = self.page_of_plans(tenant, status, cursor, limit).await?;
        if page.items.is_empty() && self.page_of_plans(tenant, None, None, 1).await?.items.is_empty() {
            self.note_tenant(tenant, now).await?;
            return self.page_of_plans(tenant, status, cursor, limit).await;
        }
        Ok(page)
    }

    async fn find_plan(&self, tenant: &TenantId, name: &PlanName) -> Result<Option<Plan>, Error> {
        let row = self
            .readers()
            .query(include_str!("../../sql/plan.sql"))
            .bind(tenant.as_str())
            .bind(name.as_str())
            .fetch_optional()
            .await?;
        row.as_ref().map(Plan::read).transpose()
    }

    async fn page_of_plans(
        &self,
        tenant: &TenantId,
        status: Option<PlanStatus>,
        cursor: Option<&PlanName>,
        limit: u32,
    ) -> Result<Page<Plan, PlanName>, Error> {
        let statement = Query::select()
            .expr(Expr::cust(COLUMNS))
            .from("plans")
            .and_where(Expr::col("tenant_id").eq(tenant.as_str()))
            .and_where_option(status.map(|status| Expr::col("status").eq(status.as_str())))
            .and_where_option(cursor.map(|after| Expr::col("name").gt(after.as_str())))
            .order_by("name", Order::Asc)
            .limit(rows_for(limit))
            .take();
        let rows = self.readers().select(&statement).fetch_all().await?;
        let plans = rows.iter().map(Plan::read).collect::<Result<_, _>>()?;
        Ok(Page::new(plans, limit, |plan: &Plan| plan.name.clone()))
    }

    async fn note_tenant(&self, tenant: &TenantId, now: RegistryTime) -> Result<(), Error> {
        let mut tx = self.write().await?;
        tenants::note(&mut tx, tenant, now).await?;
        tx.commit().await
    }
}

/// Returns the plan as seen by the transaction.
pub(crate) async fn in_transaction(
    tx: &mut Tx,
    tenant: &TenantId,
    name: &PlanName,
) -> Result<Option<Plan>, Error> {
    let row = tx
        .query(include_str!("../../sql/plan.sql"))
        .bind(tenant.as_str())
        .bind(name.as_str())
        .fetch_optional()
        .await?;
    row.as_ref().map(Plan::read).transpose()
}
