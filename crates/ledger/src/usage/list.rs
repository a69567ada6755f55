//! Windows and batches as the operators of a tenant see them.

use std::str::FromStr;

use sea_query::{Expr, ExprTrait as _, JoinType, Order, Query, SelectStatement};
use seatkeeper_core::{RegistryTime, TenantId, Usage, Window};
use uuid::Uuid;

use crate::database::Row;
use crate::page::{Page, rows_for};
use crate::row::{Fields, stored_whole};
use crate::{Error, Ledger, times};

/// What a tenant's sessions used in some window or span, by how far its batches have come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// On its way to the sink.
    pub pending: Usage,
    /// The sink has it.
    pub delivered: Usage,
    /// The sink refused it, and an operator has to look.
    pub dead: Usage,
}

/// A window in which a tenant used something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageWindow {
    /// From when until when.
    pub window: Window,
    /// How many of the tenant's sessions were metered.
    pub records: u64,
    /// What they used.
    pub recorded: Recorded,
}

/// How far a batch has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchState {
    /// It is to be delivered, at once or again.
    Pending,
    /// The sink has it.
    Delivered,
    /// The sink refused it for good; an operator may send it again.
    Dead,
}

/// A text that names no state of a batch.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a state of a batch")]
pub struct NotABatchState;

/// A batch of usage records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageBatch {
    /// Its name: what the sink knows a repetition by.
    pub id: Uuid,
    /// The window.
    pub window: Window,
    /// Its place among the tenant's batches of the window, from 1 on.
    pub number: u64,
    /// How many records it has.
    pub records: u64,
    /// What they sum to.
    pub usage: Usage,
    /// How far it has come.
    pub state: BatchState,
    /// How often it was tried since it was made or sent again.
    pub attempts: u64,
    /// Of a pending batch, when it is tried next.
    pub next_attempt: RegistryTime,
    /// The status that the sink answered last.
    pub last_status: Option<u16>,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// When the sink had it.
    pub delivered: Option<RegistryTime>,
}

impl Recorded {
    /// All of it.
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

impl BatchState {
    const ALL: [Self; 3] = [Self::Pending, Self::Delivered, Self::Dead];

    /// The state's name in records and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Dead => "dead",
        }
    }
}

impl FromStr for BatchState {
    type Err = NotABatchState;
    fn from_str(text: &str) -> Result<Self, NotABatchState> {
        Self::ALL.into_iter().find(|state| state.as_str() == text).ok_or(NotABatchState)
    }
}

impl Ledger {
    /// The windows that lie between `from` and `to` and in which the tenant used something, the newest
    /// first, those that start before `cursor`.
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
        Ok(Page::of(windows, limit, |window: &UsageWindow| window.window.starts()))
    }

    /// The tenant's batches, the newest window's first, after the batch named by `cursor`.
    pub async fn usage_batches(
        &self,
        tenant: &TenantId,
        state: Option<BatchState>,
        cursor: Option<Uuid>,
        limit: u32,
    ) -> Result<Page<UsageBatch, Uuid>, Error> {
        let statement = batches_of(tenant)
            .and_where_option(state.map(|state| Expr::col(("o", "state")).eq(state.as_str())))
            .and_where_option(cursor.map(|after| place().lt(place_of(tenant, after))))
            .order_by(("o", "window_starts_at"), Order::Desc)
            .order_by(("o", "batch"), Order::Desc)
            .limit(rows_for(limit))
            .take();
        let rows = self.readers().select(&statement).fetch_all().await?;
        let batches = rows.iter().map(UsageBatch::read).collect::<Result<_, _>>()?;
        Ok(Page::of(batches, limit, |batch: &UsageBatch| batch.id))
    }

    /// One of the tenant's batches.
    pub async fn usage_batch(&self, tenant: &TenantId, id: Uuid) -> Result<Option<UsageBatch>, Error> {
        let statement = batches_of(tenant).and_where(Expr::col(("o", "id")).eq(id)).take();
        let row = self.readers().select(&statement).fetch_optional().await?;
        row.as_ref().map(UsageBatch::read).transpose()
    }

    /// Puts a dead batch of the tenant's on its way again, as if it had never been tried, and says whether
    /// there was one.
    pub async fn send_usage_again(
        &self,
        tenant: &TenantId,
        batch: Uuid,
        now: RegistryTime,
    ) -> Result<bool, Error> {
        let mut tx = self.write().await?;
        let done = tx
            .query(include_str!("../../sql/send_batch_again.sql"))
            .bind(tenant.as_str())
            .bind(batch)
            .bind(times::stored(now))
            .execute()
            .await?;
        tx.commit().await?;
        Ok(done == 1)
    }
}

/// A tenant's batches whose windows are on record.
fn batches_of(tenant: &TenantId) -> SelectStatement {
    const COLUMNS: [&str; 11] = [
        "id",
        "window_starts_at",
        "batch",
        "records",
        "micro_units",
        "state",
        "attempts",
        "next_attempt_at",
        "last_status",
        "last_error",
        "delivered_at",
    ];
    Query::select()
        .columns(COLUMNS.map(|column| ("o", column)))
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

/// A batch's place in the list.
fn place() -> Expr {
    Expr::tuple([Expr::col(("o", "window_starts_at")), Expr::col(("o", "batch"))])
}

/// The place of the batch with this id; before all others if it is not the tenant's.
fn place_of(tenant: &TenantId, id: Uuid) -> Expr {
    let place = Query::select()
        .columns(["window_starts_at", "batch"])
        .from("usage_outbox")
        .and_where(Expr::col("id").eq(id))
        .and_where(Expr::col("tenant_id").eq(tenant.as_str()))
        .take();
    Expr::SubQuery(None, Box::new(place.into()))
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
