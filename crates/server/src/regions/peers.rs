//! The other regions, and requests to them. The connections of a peer are kept alive and shared.

use std::collections::HashMap;
use std::time::Duration;

use axum::body::Bytes;
use reqwest::header::HeaderMap;
use reqwest::{Client, Method, Response, StatusCode, Url};
use seatkeeper_core::Region;

use super::peer_token::REGION_TOKEN;
use crate::auth::KeyError;
use crate::error::Error;
use crate::outbound::{self, PeerFault};
use crate::settings::{PeerSettings, RegionSettings};

/// The longest silence within an answer. Streams of events have a keep-alive comment more often.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// The other regions.
pub(super) struct Peers {
    client: Client,
    answer_timeout: Duration,
    /// The address of each region, without a slash at the end.
    urls: HashMap<Region, String>,
}

/// A request to a peer.
pub(crate) struct Sent<'a> {
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) path: &'a str,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// The whole answer of a peer.
pub(crate) struct WholeAnswer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Peers {
    pub(super) fn new(settings: &RegionSettings) -> Result<Self, KeyError> {
        let url = |peer: &PeerSettings| (Region::new(peer.number), peer.url.trim_end_matches('/').to_owned());
        let answer_timeout = Duration::from_millis(settings.forward_timeout_milliseconds);
        Ok(Self {
            client: outbound::streaming_client(answer_timeout, SILENCE_MAX)?,
            answer_timeout,
            urls: settings.peers.iter().map(url).collect(),
        })
    }

    /// Returns the address of a peer, or `Err(RegionUnknown)`.
    pub(super) fn url(&self, region: Region) -> Result<&str, Error> {
        self.urls.get(&region).map(String::as_str).ok_or(Error::RegionUnknown(region))
    }

    /// Returns the URL of a path and query at a peer. Returns `Err(NoSuchRoute)` unless the path of the URL equals the
    /// given path: a URL parser takes `\` for `/` and resolves dot segments, so a client's path could lead to a route
    /// of the peer that is not for clients. The parser leaves the meaning of a query unchanged.
    pub(super) fn url_of(&self, region: Region, path_and_query: &str) -> Result<Url, Error> {
        let url = Url::parse(&format!("{}{path_and_query}", self.url(region)?));
        let path = path_and_query.split_once('?').map_or(path_and_query, |(path, _)| path);
        url.ok().filter(|url| url.path() == path).ok_or(Error::NoSuchRoute)
    }

    /// Returns `true` if the region is a peer.
    pub(super) fn has(&self, region: Region) -> bool {
        self.urls.contains_key(&region)
    }

    /// Sends a request to a peer at `url`, which [`Peers::url_of`] has made of the request's path. Returns the
    /// beginning of the answer.
    pub(super) async fn send(&self, url: Url, token: &str, sent: Sent<'_>) -> Result<Response, PeerFault> {
        let request = self.client.request(sent.method, url).headers(sent.headers).header(REGION_TOKEN, token);
        match tokio::time::timeout(self.answer_timeout, request.body(sent.body).send()).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) if error.is_connect() => Err(PeerFault::NotConnected(outbound::causes(error))),
            Ok(Err(error)) => Err(PeerFault::Transport(outbound::causes(error))),
            Err(_) => Err(PeerFault::TimedOut),
        }
    }

    /// Returns whether a server of the peer at `url` answers, with any status.
    pub(super) async fn is_alive(&self, url: &str) -> bool {
        let answer = self.client.get(format!("{url}/healthz")).send();
        match tokio::time::timeout(self.answer_timeout, answer).await {
            Ok(Ok(answer)) => is_from_server(answer.status(), answer.headers()),
            Ok(Err(_)) | Err(_) => false,
        }
    }

    /// Reads the rest of an answer, up to `bytes_max` bytes.
    pub(super) async fn whole(&self, answer: Response, bytes_max: usize) -> Result<WholeAnswer, PeerFault> {
        let status = answer.status().as_u16();
        let reading = outbound::up_to(answer, bytes_max);
        let body =
            tokio::time::timeout(self.answer_timeout, reading).await.map_err(|_| PeerFault::TimedOut)?;
        Ok(WholeAnswer { status, body })
    }
}

/// Returns whether an answer may come from a server. A load balancer without a server answers 502, 503 or 504, and never with
/// a request id.
pub(super) fn is_from_server(status: StatusCode, headers: &HeaderMap) -> bool {
    !matches!(status.as_u16(), 502..=504) || headers.contains_key("x-request-id")
}

#[cfg(test)]
mod tests;
