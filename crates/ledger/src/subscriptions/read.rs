//! Lookup and listing of subscriptions.

use sea_query::{Cond, Expr, ExprTrait as _, Order, Query};
use seatkeeper_core::{RegistryTime, TenantId, UserId};

use super::{Held, Subscriber, Subscription, SubscriptionId, SubscriptionStatus};
use crate::database::Tx;
use crate::page::{Page, rows_for};
use crate::plans::PlanName;
use crate::{Error, Ledger, times};

const COLUMNS: &str =
    "id, tenant_id, user_id, plan, status, starts_at, ends_at, version, created_at, updated_at";

/// A filter for subscriptions. A subscription matches if every given field matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionFilter {
    /// The subscribed user.
    pub user: Option<UserId>,
    /// The plan.
    pub plan: Option<PlanName>,
    /// The status, with the end considered.
    pub status: Option<SubscriptionStatus>,
}

impl Ledger {
    /// Returns the tenant's subscription of an id.
    pub async fn subscription(
        &self,
        tenant: &TenantId,
        id: SubscriptionId,
    ) -> Result<Option<Subscription>, Error> {
        let row = self
            .readers()
            .query(include_str!("../../sql/subscription.sql"))
            .bind(tenant.as_str())
            .bind(id.0)
            .fetch_optional()
            .await?;
        row.as_ref().map(Subscription::read).transpose()
    }

    /// Returns a page of the tenant's subscriptions matching at `now`, in the order of creation, after
    /// subscription `cursor`.
    pub async fn list_subscriptions(
        &self,
        tenant: &TenantId,
        filter: &SubscriptionFilter,
        now: RegistryTime,
        cursor: Option<SubscriptionId>,
        limit: u32,
    ) -> Result<Page<Subscription, SubscriptionId>, Error> {
        let statement = Query::select()
            .expr(Expr::cust(COLUMNS))
            .from("subscriptions")
            .and_where(Expr::col("tenant_id").eq(tenant.as_str()))
            .and_where_option(filter.user.as_ref().map(|user| Expr::col("user_id").eq(user.as_str())))
            .and_where_option(filter.plan.as_ref().map(|plan| Expr::col("plan").eq(plan.as_str())))
            .cond_where(filter.status.map_or(Cond::all(), |status| has_status(status, now)))
            .and_where_option(cursor.map(|after| Expr::col("id").gt(after.0)))
            .order_by("id", Order::Asc)
            .limit(rows_for(limit))
            .take();
        let rows = self.readers().select(&statement).fetch_all().await?;
        let subscriptions = rows.iter().map(Subscription::read).collect::<Result<_, _>>()?;
        Ok(Page::new(subscriptions, limit, |subscription: &Subscription| subscription.id))
    }

    /// Returns the user's newest subscription and its plan, the two sources of the user's limit.
    pub async fn subscriber(&self, tenant: &TenantId, user: &UserId) -> Result<Subscriber, Error> {
        let row = self
            .readers()
            .query(include_str!("../../sql/subscriber.sql"))
            .bind(tenant.as_str())
            .bind(user.as_str())
            .fetch_optional()
            .await?;
        Ok(Subscriber::new(row.as_ref().map(Held::read).transpose()?))
    }
}

/// Builds a condition for rows whose [`Subscription::status_at`] is `status`.
fn has_status(status: SubscriptionStatus, now: RegistryTime) -> Cond {
    let is = |status: SubscriptionStatus| Expr::col("status").eq(status.as_str());
    let ends_at = || Expr::col("ends_at");
    let now = times::stored(now);
    match status {
        SubscriptionStatus::Active => {
            let not_over = Cond::any().add(ends_at().is_null()).add(ends_at().gt(now));
            Cond::all().add(is(status)).add(not_over)
        }
        SubscriptionStatus::Cancelled => Cond::all().add(is(status)),
        SubscriptionStatus::Expired => {
            let over = Cond::all().add(is(SubscriptionStatus::Active)).add(ends_at().lte(now));
            Cond::any().add(is(status)).add(over)
        }
    }
}

/// Returns the subscription as seen by the transaction.
pub(super) async fn in_transaction(
    tx: &mut Tx,
    tenant: &TenantId,
    id: SubscriptionId,
) -> Result<Option<Subscription>, Error> {
    let row = tx
        .query(include_str!("../../sql/subscription.sql"))
        .bind(tenant.as_str())
        .bind(id.0)
        .fetch_optional()
        .await?;
    row.as_ref().map(Subscription::read).transpose()
}

/// Returns the user's newest subscription as seen by the transaction.
pub(super) async fn newest_in_transaction(
    tx: &mut Tx,
    tenant: &TenantId,
    user: &UserId,
) -> Result<Option<Subscription>, Error> {
    let row = tx
        .query(include_str!("../../sql/newest_subscription.sql"))
        .bind(tenant.as_str())
        .bind(user.as_str())
        .fetch_optional()
        .await?;
    row.as_ref().map(Subscription::read).transpose()
}
