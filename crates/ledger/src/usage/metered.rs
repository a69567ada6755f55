//! Capacity sessions with the data needed for metering.

use futures_util::{Stream, StreamExt as _};
use seatkeeper_core::{Metered, SessionId, TenantId, Window};
use uuid::Uuid;

use crate::database::Row;
use crate::row::Fields;
use crate::{Error, Ledger, times};

/// A capacity session, live or ended.
pub(super) struct MeteredSession {
    pub(super) id: SessionId,
    pub(super) tenant: TenantId,
    pub(super) user: Uuid,
    pub(super) capacity: Uuid,
    pub(super) life: Metered,
}

/// A position in the order of tenants and sessions. The default is before every session.
#[derive(Clone, Debug, Default)]
pub(super) struct Position {
    tenant: String,
    id: Uuid,
}

impl Ledger {
    /// Streams at most `max` sessions possibly live in the window, ordered by tenant and id, after position
    /// `after`. Every session appears exactly once over all pages, because a session ending meanwhile keeps
    /// its position. The statement sorts every session ended since the start of the window before the first row, so with a
    /// backlog of usage the first row takes long.
    pub(super) fn metered_in(
        &self,
        window: Window,
        after: &Position,
        max: u32,
    ) -> impl Stream<Item = Result<MeteredSession, Error>> + Send + '_ {
        self.readers()
            .query(include_str!("../../sql/metered_sessions.sql"))
            .bind(times::stored(window.starts()))
            .bind(times::stored(window.ends()))
            .bind(after.tenant.clone())
            .bind(after.id)
            .bind(i64::from(max))
            .fetch_long()
            .map(|row| MeteredSession::read(&row?))
    }

    /// Streams the tenant's sessions possibly live in the span, in no order.
    pub(super) fn metered_of_tenant(
        &self,
        tenant: &TenantId,
        span: Window,
    ) -> impl Stream<Item = Result<MeteredSession, Error>> + Send + '_ {
        self.readers()
            .query(include_str!("../../sql/metered_sessions_of_tenant.sql"))
            .bind(tenant.as_str().to_owned())
            .bind(times::stored(span.starts()))
            .bind(times::stored(span.ends()))
            .fetch()
            .map(|row| MeteredSession::read(&row?))
    }
}

impl MeteredSession {
    pub(super) fn place(&self) -> Position {
        Position { tenant: self.tenant.as_str().to_owned(), id: self.id.as_uuid() }
    }

    fn read(row: &Row) -> Result<Self, Error> {
        let fields = Fields(row);
        let (user, capacity) = parts(fields.value::<&str>("pool_id")?)?;
        let expires = fields.time("expires_at")?;
        // The end of an expired session is recorded late. Usage stops at the expiry.
        let over = fields.time_maybe("ended_at")?.map_or(expires, |ended| ended.min(expires));
        Ok(Self {
            id: fields.session_id("id")?,
            tenant: TenantId::new(fields.value::<&str>("tenant_id")?),
            user,
            capacity,
            life: Metered { started: fields.time("started_at")?, over, tier: fields.tier("tier")? },
        })
    }
}

/// Splits a pool's name into the user and the capacity.
fn parts(pool: &str) -> Result<(Uuid, Uuid), Error> {
    let (user, capacity) = pool.split_once('/').unwrap_or((pool, ""));
    let part = |text| Uuid::try_parse(text).map_err(corrupt);
    Ok((part(user)?, part(capacity)?))
}

fn corrupt(source: uuid::Error) -> Error {
    Error::Corrupt { column: "pool_id", source: source.into() }
}
