//! Requests of devices while the home of their subscriber is unreachable, if the settings let nodes admit meanwhile.

use axum::extract::MatchedPath;
use axum::http::Method;
use seatkeeper_core::{Region, SessionId, UserId};
use seatkeeper_ledger::homes::Home;

use super::Layer;
use super::incoming::Incoming;
use crate::auth::Caller;
use crate::devices::pool_of;
use crate::error::Error;
use crate::outbound::PeerFault;
use crate::regions::WithoutHome;

/// The route of claims and lists.
const SESSIONS: &str = "/api/v1/devices/sessions";

/// The route of heartbeats.
const HEARTBEAT: &str = "/api/v1/devices/sessions/heartbeat";

impl Layer {
    /// Returns the home that decides after region `asked` was not reached: a newer home, or this region in place of the
    /// home, with the mark [`WithoutHome`] at the request. Returns `error` unless this node may decide.
    ///
    /// A request that may have reached the home keeps its error: the home may have admitted the device.
    pub(super) async fn without_home(
        &self,
        incoming: &mut Incoming,
        asked: Region,
        error: Error,
    ) -> Result<Home, Error> {
        let is_undelivered = matches!(
            error,
            Error::RegionUnavailable { source: PeerFault::NotConnected(_) | PeerFault::TooManyWait, .. }
        );
        let Some((tenant, user)) = incoming.subscriber.clone() else { return Err(error) };
        if !is_undelivered || !self.regions.admits_without_home() {
            return Err(error);
        }
        let route = incoming.parts.extensions.get::<MatchedPath>().map(MatchedPath::as_str);
        let may_decide = match (&incoming.parts.method, route) {
            (&Method::POST, Some(SESSIONS)) => true,
            // A list without a session of this node would hide the sessions in the home.
            (&Method::GET, Some(SESSIONS)) => {
                self.app.engine.view_without_home(&pool_of(&tenant, &user), 0).await?.is_some()
            }
            _ => false,
        };
        if !may_decide {
            return Err(error);
        }
        let Some(newest) = self.regions.recheck_home(&tenant, &user, asked).await? else { return Err(error) };
        if newest.region != asked {
            return Ok(newest);
        }
        // A single attempt to connect may fail at this node alone, or at a home with too many connections.
        if !self.regions.confirms_away(asked).await {
            return Err(error);
        }
        let terms = self.regions.told_terms(&tenant, &user);
        incoming.parts.extensions.insert(WithoutHome { terms });
        Ok(Home::first(self.regions.own()))
    }

    /// Returns the own region as the home of a session in place of the home, in the memory of this node. The session ends
    /// once a server of the home answers.
    ///
    /// A session of the own region may be in the memory of a second node. The handler of heartbeats then goes by the
    /// record, and every further request is refused while the home is away.
    pub(super) async fn kept_without_home(
        &self,
        id: SessionId,
        caller: &Caller,
        path: &str,
    ) -> Result<Option<Home>, Error> {
        if !self.regions.admits_without_home() || id.region() != self.regions.own() {
            return Ok(None);
        }
        let is_heartbeat = path == HEARTBEAT;
        let kept = self.app.engine.pool_without_home(id, caller.authority()).await?;
        let user = match &kept {
            Some(pool) => UserId::new(&*pool.name),
            // An admin's own home tells nothing of the session.
            None if is_heartbeat || caller.scopes.admin => return Ok(None),
            None => caller.user.clone(),
        };
        let has_stream = path.ends_with("/events");
        match (kept, self.regions.check_home_back(&caller.tenant, &user).await) {
            (Some(_), Ok(())) => self.app.engine.end_without_home(id, caller.authority()).await?,
            (Some(_), Err(Error::RegionUnavailable { .. })) if !has_stream => {}
            // Without the ledger, the region in the id decides.
            (None, Ok(()) | Err(Error::Ledger(_))) => return Ok(None),
            (Some(_) | None, Err(error)) => return Err(error),
        }
        Ok(Some(Home::first(self.regions.own())))
    }
}
