//! The homes of sessions and pools that an admin names.

use axum::extract::Query;
use axum::http::request::Parts;
use seatkeeper_core::{EndReason, PoolKind, SessionId, UserId};
use seatkeeper_ledger::homes::Home;

use super::Layer;
use super::home::session_in_path;
use crate::admin::PoolQuery;
use crate::auth::Caller;
use crate::error::Error;
use crate::forwarding::newer;
use crate::http::name_field;

impl Layer {
    /// Returns the home of the session in the path. `None` for a caller without the admin scope, and for an id of an
    /// unknown region.
    pub(super) async fn home_of_admin_session(
        &self,
        caller: &Caller,
        parts: &Parts,
        subscriber: &mut newer::Subscriber,
    ) -> Result<Option<Home>, Error> {
        let id = session_in_path(parts).and_then(|id| SessionId::try_from(id).ok());
        let Some(id) = id.filter(|_| caller.scopes.admin) else { return Ok(None) };
        if let Some(here) = self.kept_without_home(id, caller, parts.uri.path()).await? {
            return Ok(Some(here));
        }
        self.home_of_managed(caller, id, subscriber).await
    }

    /// Returns the home of a session that an admin names. The region with the end of a session on record answers, and
    /// otherwise the home of the session's subscriber. Any other session is in the region of the id, which knows a newer
    /// home.
    pub(super) async fn home_of_managed(
        &self,
        admin: &Caller,
        id: SessionId,
        subscriber: &mut newer::Subscriber,
    ) -> Result<Option<Home>, Error> {
        // Without the ledger, the id decides.
        let found = self.app.ledger.find_session(id).await.unwrap_or_default();
        let Some(record) =
            found.map(|found| found.record).filter(|record| record.pool.tenant == admin.tenant)
        else {
            self.regions.check_session(id)?;
            return Ok(self.regions.home_of_session(id).map(Home::first));
        };
        let end = record.ended.map(|end| end.reason);
        if end.is_some_and(|reason| reason != EndReason::Moved) || record.pool.kind != PoolKind::Subscriber {
            return Ok(Some(Home::first(self.regions.own())));
        }
        let user = UserId::new(&*record.pool.name);
        if end == Some(EndReason::Moved) {
            // This node may have missed the move.
            self.regions.invalidate(&admin.tenant, &user);
        }
        *subscriber = Some((admin.tenant.clone(), user.clone()));
        self.regions.home_of_held(&admin.tenant, &user, id).await
    }

    /// Returns the home of the pool in the query. `None` for a query or a caller whom the API refuses. A subscriber without
    /// a home gets a home, as in any other request.
    pub(super) async fn home_of_admin_pool(
        &self,
        caller: &Caller,
        parts: &Parts,
        subscriber: &mut newer::Subscriber,
    ) -> Result<Option<Home>, Error> {
        let query = Query::<PoolQuery>::try_from_uri(&parts.uri).ok().filter(|_| caller.scopes.admin);
        let Some(pool) = query.and_then(|Query(query)| query.pool_of(&caller.tenant).ok()) else {
            return Ok(None);
        };
        match pool.kind {
            PoolKind::License | PoolKind::Capacity => self.regions.anchor_of(&pool.tenant).await.map(Some),
            // A name that the API of devices refuses has no home.
            PoolKind::Subscriber if name_field(&pool.name, &()).is_err() => Ok(None),
            PoolKind::Subscriber => {
                self.home_of(&pool.tenant, &UserId::new(&*pool.name), subscriber).await.map(Some)
            }
            PoolKind::Group => {
                let Ok(group) = pool.name.parse::<SessionId>() else { return Ok(None) };
                self.regions.check_session(group)?;
                Ok(self.regions.home_of_session(group).map(Home::first))
            }
        }
    }
}
