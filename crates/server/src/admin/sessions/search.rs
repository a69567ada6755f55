//! Search for sessions. The registry answers a search for the live sessions of a single pool, and the ledger
//! the rest.

use std::net::IpAddr;

use axum::extract::State;
use seatkeeper_core::{Authority, Holder, PoolId, TenantId, UserId};
use seatkeeper_ledger::sessions::{SessionFilter, SessionRecord};
use serde::Deserialize;
use utoipa::IntoParams;

use super::pool_name::PoolKindName;
use crate::app::App;
use crate::auth::tenant_from_text;
use crate::error::Error;
use crate::held_sessions::held_sessions;
use crate::http::{Admin, AdminProblems, Page, ParameterProblems, Problems, Query, cursor_of, page_limit};
use crate::session_answer::SessionAnswer;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SearchQuery {
    /// `license`, `subscriber`, `capacity` or `group`.
    #[param(value_type = Option<String>)]
    pool_kind: Option<PoolKindName>,
    /// The license's id, the subscriber, or the user and the capacity with `/` between.
    /// Without `pool_kind`, UUIDs must be in lower case.
    pool: Option<String>,
    /// Holder of the seat: a machine, a user or a device's fingerprint.
    holder: Option<String>,
    /// User who acquired the session.
    user: Option<String>,
    /// Tenant of the user, for a service of a foreign tenant; only together with `user`.
    user_tenant: Option<String>,
    /// Address of the client.
    #[param(value_type = Option<String>)]
    ip: Option<IpAddr>,
    /// `true`: live sessions; `false`: ended sessions; absent: both.
    live: Option<bool>,
    /// Value of `next_cursor` from the previous page.
    cursor: Option<String>,
    /// Highest number of sessions in a page: 1 to 500, by default 50.
    limit: Option<u32>,
}

/// `GET /sessions`: lists the sessions that match every filter, the newest first.
#[utoipa::path(
    get, path = "/api/v1/admin/sessions", tag = "admin", operation_id = "search_sessions", security(("bearer" = [])),
    params(SearchQuery),
    responses(
        Problems, AdminProblems, ParameterProblems,
        (status = 200, body = Page<SessionAnswer>)
    )
)]
pub(crate) async fn search(
    State(app): State<App>,
    who: Admin,
    Query(query): Query<SearchQuery>,
) -> Result<axum::Json<Page<SessionAnswer>>, Error> {
    let (limit, cursor) = (page_limit(query.limit)?, cursor_of(query.cursor.as_deref())?);
    let live_alone = query.live == Some(true);
    let filter = query.filter()?;
    if let Some(pool) = live_pool(&who.tenant, &filter)
        && let Some(held) = held_sessions(&app, &pool, &who.authority(), cursor, limit).await?
    {
        return Ok(axum::Json(held));
    }
    let page =
        app.ledger.search_sessions(&who.tenant, &filter, cursor, limit).await.map_err(Error::Ledger)?;
    let authority = who.authority();
    let next_cursor = page.next.map(|id| id.to_string());
    let mut items = Vec::with_capacity(page.items.len());
    for record in page.items {
        items.extend(now(&app, record, &authority, live_alone).await?);
    }
    Ok(axum::Json(Page { items, next_cursor }))
}

/// Returns the pool of a filter for the live sessions of a single pool, which the registry can list.
fn live_pool(tenant: &TenantId, filter: &SessionFilter) -> Option<PoolId> {
    match filter {
        SessionFilter {
            pool_kind: Some(kind),
            pool: Some(pool),
            live: Some(true),
            holder: None,
            user: None,
            ip: None,
        } => Some(PoolId::new(*kind, tenant.clone(), pool.clone())),
        _ => None,
    }
}

/// Returns the current state of a recorded session. A session that is live on record may be over and not yet
/// swept; with `live_alone` the function then returns `None`.
pub(super) async fn now(
    app: &App,
    record: SessionRecord,
    who: &Authority,
    live_alone: bool,
) -> Result<Option<SessionAnswer>, Error> {
    let who = &who.clone().through(record.pool.kind);
    if record.ended.is_some() {
        return Ok(Some(SessionAnswer::new(&record, None, who)));
    }
    if let Some(live) = app.engine.live(record.session.id, who).await? {
        return Ok(Some(SessionAnswer::new(&record, Some(&live), who)));
    }
    if live_alone {
        return Ok(None);
    }
    let ended = app.engine.record(record.session.id, who).await?;
    Ok(ended.map(|record| SessionAnswer::new(&record, None, who)))
}

impl SearchQuery {
    fn filter(self) -> Result<SessionFilter, Error> {
        let user = self.user.as_deref().map(UserId::from);
        let user = match (user, self.user_tenant) {
            (Some(user), Some(tenant)) => Some(UserId::from_abroad(&tenant_from_text(&tenant), &user)),
            (None, Some(_)) => return Err(Error::field("user", "is needed beside `user_tenant`")),
            (user, None) => user,
        };
        let pool = match (self.pool_kind, self.pool) {
            (Some(kind), Some(pool)) => Some(kind.pool_name(&pool)?),
            (_, pool) => pool,
        };
        Ok(SessionFilter {
            pool_kind: self.pool_kind.map(|kind| kind.0),
            pool: pool.map(Into::into),
            holder: self.holder.as_deref().map(Holder::from),
            user,
            ip: self.ip,
            live: self.live,
        })
    }
}
