//! The layer in front of the APIs: a request of a pool at home elsewhere is forwarded to the pool's home.

mod accept;
mod administered;
mod fast_path;
mod former_home;
mod home;
mod incoming;
mod sending;
mod without_home;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use seatkeeper_ledger::homes::Home;

use self::incoming::Incoming;
use self::sending::Forwarded;
use super::locator::{self, Locator};
use super::newer;
use crate::app::App;
use crate::error::Error;
use crate::flood::Flood;
use crate::problem::LeftHome;
use crate::regions::{Regions, check_silence};

/// The most regions that are asked for one request as its home: the home as this region knows it, or the region in a session's
/// id, and two newer homes.
const HOPS_MAX: usize = 3;

/// The outcome of the layer.
enum Routed {
    /// The request is answered here.
    Here(Request),
    /// The request is answered here, unless a former home has an end of the session on record.
    HereOrEnded(Box<Incoming>),
    /// The home has answered the request.
    Answered(Response),
}

/// The layer of a server with regions.
pub(crate) struct Layer {
    regions: Arc<Regions>,
    app: App,
    /// The log lines of refused tokens, which anyone can send.
    refused_tokens: Flood,
}

impl Layer {
    /// Returns the layer of a server. `None` for a server without regions.
    pub(crate) fn new(app: &App) -> Option<Self> {
        let regions = Arc::clone(app.regions.as_ref()?);
        Some(Self { regions, app: app.clone(), refused_tokens: Flood::default() })
    }

    /// Answers a request here by `next`, or forwards the request to its home.
    pub(crate) async fn pass(&self, mut request: Request, next: Next) -> Response {
        match fast_path::is_here(self, &mut request).await {
            Ok(true) => self.noted(next.run(request).await),
            // On the heap, so that the futures of other requests stay small: they are moved.
            Ok(false) => Box::pin(self.answer_or_forward(request, next)).await,
            Err(error) => error.into_response(),
        }
    }

    async fn answer_or_forward(&self, request: Request, next: Next) -> Response {
        match self.routed(request).await {
            Ok(Routed::Here(request)) => self.noted(next.run(request).await),
            Ok(Routed::HereOrEnded(incoming)) => {
                let mut copy = incoming.copy();
                let answer = self.noted(next.run(incoming.into_request()).await);
                self.or_former_end(&mut copy, answer).await
            }
            Ok(Routed::Answered(answer)) => answer,
            Err(error) => error.into_response(),
        }
    }

    /// Notes that a home has left this region, if an answer of this region says so.
    fn noted(&self, answer: Response) -> Response {
        if let Some(LeftHome(tenant, user)) = answer.extensions().get() {
            self.regions.invalidate(tenant, user);
        }
        answer
    }

    /// Returns the time limit of reading a request's body.
    fn body_timeout(&self) -> Duration {
        self.app.settings.server.body_timeout()
    }

    async fn routed(&self, mut request: Request) -> Result<Routed, Error> {
        let forwarder = self.accept(&mut request).await?;
        let route = request.extensions().get::<MatchedPath>();
        let Some(locator) = route.and_then(|route| Locator::for_route(request.method(), route.as_str()))
        else {
            return Ok(Routed::Here(request));
        };
        let admits = route.is_some_and(|route| locator::admits(request.method(), route.as_str()));
        let mut incoming = Incoming::new(request, forwarder.is_some());
        let mut home = self.home_for(locator, &mut incoming).await?;
        if incoming.is_forwarded
            && home.is_some_and(|home| home.region != self.regions.own())
            && let Some((tenant, user)) = incoming.subscriber.take()
        {
            // The home may have moved to here since it was cached.
            self.regions.invalidate(&tenant, &user);
            home = self.home_for(locator, &mut incoming).await?;
        }
        for _ in 0..HOPS_MAX {
            match home.filter(|home| home.region != self.regions.own()) {
                None => {
                    if admits {
                        self.regions.check_number()?;
                        self.check_silence(home).await?;
                    }
                    return Ok(self.here(home, incoming));
                }
                Some(home) if incoming.is_forwarded => return self.misdirected(home, incoming).await,
                Some(asked) => match self.renew_or_forward(&mut incoming, asked.region).await {
                    Ok(Forwarded::Answered(answer)) => {
                        return Ok(self.answered_by(asked.region, incoming, answer).await);
                    }
                    Ok(Forwarded::Misdirected { refusal, .. }) => {
                        home = Some(newer::home(&self.regions, &incoming.subscriber, asked, refusal).await?);
                    }
                    Err(error) => home = Some(self.without_home(&mut incoming, asked.region, error).await?),
                },
            }
        }
        Err(newer::moves_too_often(&incoming.subscriber))
    }

    /// Returns `Err(AdoptedSilent)` if the home is adopted from a lost region, and sessions that are not on record may live.
    async fn check_silence(&self, home: Option<Home>) -> Result<(), Error> {
        match home.and_then(|home| home.admits_from) {
            Some(admits_from) => check_silence(&self.app.engine, admits_from).await,
            None => Ok(()),
        }
    }
}
