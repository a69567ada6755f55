//! Usage windows and batches, listed for a tenant's operators.

use sea_query::{Expr, ExprTrait as _, JoinType, Order, Query, SelectStatement};
use seatkeeper_core::{RegistryTime, TenantId, Usage, Window, named_enum};
use uuid::Uuid;

use crate::database::Row;
use crate::page::{Page, rows_for};
use crate::row::{Fields, stored_whole};
use crate::{Error, Ledger, times};

/// A tenant's usage in a window or span, by the state of its batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Pending delivery.
    pub pending: Usage,
    /// Delivered to the sink.
    pub delivered: Usage,
    /// Refused by the sink for good.
    pub dead: Usage,
}

/// A window with usage of a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageWindow {
    /// The start and the end.
    pub window: Window,
    /// The number of the tenant's metered sessions.
    pub records: u64,
    /// The usage on record.
    pub recorded: Recorded,
}

named_enum! {
    /// The state of a batch.
    pub enum BatchState else "not a state of a batch" {
        /// Waiting for delivery, or for a retry.
        Pending = "pending",
        /// Delivered to the sink.
        Delivered = "delivered",
        /// Refused by the sink for good. An operator may send the batch again.
        Dead = "dead",
    }
}

/// A batch of usage records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageBatch {
    /// The batch's id. The sink detects repetitions by the id.
    pub id: Uuid,
    /// The window.
    pub window: Window,
    /// The batch's number among the tenant's batches of the window, from 1.
    pub number: u64,
    /// The number of records.
    pub records: u64,
    /// The total usage of the records.
    pub usage: Usage,
    /// The state of the batch.
    pub state: BatchState,
    /// Attempts since the batch was created or sent again.
    pub attempts: u64,
    /// The time of the next attempt, for a pending batch.
    pub next_attempt: RegistryTime,
    /// The HTTP status of the sink's last response.
    pub last_status: Option<u16>,
    /// The last error.
    pub last_error: Option<String>,
    /// The time of the delivery.
    pub delivered: Option<RegistryTime>,
}

/// The position of a batch in the order of windows and numbers. The default is before every batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct BatchPosition {
    /// The start of the window.
    pub window_starts: RegistryTime,
    /// The batch's number in the window.
    pub number: u64,
}

impl Recorded {
    /// Returns the total usage.
    pub fn usage(self) -> Usage {
        self.pending + self.delivered + self.dead
    }

    pub(super) fn add(self, other: Self) -> Self {
        Self {
            pending: self.pending + other.pending,
            delivered: self.delivered + other.delivered,
            dead: self.dead + other.dead,
        }
    }

    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, Error> {
        Ok(Self {
            pending: fields.usage("pending")?,
            delivered: fields.usage("delivered")?,
            dead: fields.usage("dead")?,
        })
    }
}

impl Ledger {
    /// Returns a page of the windows that start within `span` with usage of the tenant, newest first, before
    /// `cursor`.
    pub async fn usage_windows(
        &self,
        tenant: &TenantId,
        span: Window,
        cursor: Option<RegistryTime>,
        limit: u32,
    ) -> Result<Page<UsageWindow, RegistryTime>, Error> {
        let rows = self
            .readers()
            .query(include_str!("../../sql/tenant_windows.sql"))
            .bind(tenant.as_str())
            .bind(times::stored(span.starts()))
            .bind(times::stored(span.ends()))
            .bind(times::stored(cursor.unwrap_or(span.ends())))
            .bind(stored_whole(rows_for(limit)))
            .fetch_all()
            .await?;
        let windows = rows.iter().map(UsageWindow::read).collect::<Result<_, _>>()?;
        Ok(Page::new(windows, limit, |window: &UsageWindow| window.window.starts()))
    }

    /// Returns a page of the tenant's batches, newest window first, after position `cursor`. The batch at the position
    /// may be gone.
    pub async fn usage_batches(
        &self,
        tenant: &TenantId,
        state: Option<BatchState>,
        cursor: Option<BatchPosition>,
        limit: u32,
    ) -> Result<Page<UsageBatch, BatchPosition>, Error> {
        let statement = batches_of(tenant)
            .and_where_option(state.map(|state| Expr::col(("o", "state")).eq(state.as_str())))
            .and_where_option(cursor.map(|after| place().lt(place_of(after))))
            .order_by(("o", "window_starts_at"), Order::Desc)
            .order_by(("o", "batch"), Order::Desc)
            .limit(rows_for(limit))
            .take();
        let rows = self.readers().select(&statement).fetch_all().await?;
        let batches = rows.iter().map(UsageBatch::read).collect::<Result<_, _>>()?;
        Ok(Page::new(batches, limit, UsageBatch::position))
    }

    /// Returns a batch of the tenant.
    pub async fn usage_batch(&self, tenant: &TenantId, id: Uuid) -> Result<Option<UsageBatch>, Error> {
        let statement = batches_of(tenant).and_where(Expr::col(("o", "id")).eq(id)).take();
        let row = self.readers().select(&statement).fetch_optional().await?;
        row.as_ref().map(UsageBatch::read).transpose()
    }
}

/// Selects a tenant's batches with their windows on record. Staged batches have no window and are left out.
fn batches_of(tenant: &TenantId) -> SelectStatement {
    const COLUMNS: &str = "o.id, o.window_starts_at, o.batch, o.records, o.micro_units, o.state, o.attempts, \
        o.next_attempt_at, o.last_status, o.last_error, o.delivered_at";
    Query::select()
        .expr(Expr::cust(COLUMNS))
        .expr_as(Expr::col(("w", "ends_at")), "window_ends_at")
        .from_as("usage_outbox", "o")
        .join_as(
            JoinType::InnerJoin,
            "usage_windows",
            "w",
            Expr::col(("w", "starts_at")).equals(("o", "window_starts_at")),
        )
        .and_where(Expr::col(("o", "tenant_id")).eq(tenant.as_str()))
        .take()
}

/// The sort key of a batch.
fn place() -> Expr {
    Expr::tuple([Expr::col(("o", "window_starts_at")), Expr::col(("o", "batch"))])
}

/// The sort key at a position.
fn place_of(position: BatchPosition) -> Expr {
    let window_starts = times::stored(position.window_starts);
    Expr::tuple([Expr::val(window_starts), Expr::val(stored_whole(position.number))])
}

impl UsageWindow {
    fn read(row: &Row) -> Result<Self, Error> {
        let fields = Fields(row);
        Ok(Self {
            window: fields.window()?,
            records: fields.whole("records")?,
            recorded: Recorded::read(&fields)?,
        })
    }
}

impl UsageBatch {
    fn position(&self) -> BatchPosition {
        BatchPosition { window_starts: self.window.starts(), number: self.number }
    }

    fn read(row: &Row) -> Result<Self, Error> {
        let fields = Fields(row);
        Ok(Self {
            id: fields.value("id")?,
            window: fields.window()?,
            number: fields.whole("batch")?,
            records: fields.whole("records")?,
            usage: fields.usage("micro_units")?,
            state: fields.named("state")?,
            attempts: fields.whole("attempts")?,
            next_attempt: fields.time("next_attempt_at")?,
            last_status: fields.number_maybe("last_status")?,
            last_error: fields.value("last_error")?,
            delivered: fields.time_maybe("delivered_at")?,
        })
    }
}
