//! Requests to the peer regions, signed with the key of this region, and the tokens of requests from peers.

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, Response};
use seatkeeper_core::Region;
use seatkeeper_ledger::homes::Adoption;
use serde::{Deserialize, Serialize};

use super::peers::is_from_server;
use super::{Client, Forwarder, Regions, Sent, WholeAnswer};
use crate::error::Error;
use crate::outbound::{self, PeerFault};

/// The type of the problem in a refusal.
#[derive(Deserialize)]
struct Refusal {
    #[serde(rename = "type")]
    kind: String,
}

/// Returns the type of the problem in a peer's refusal; `None` for any other body.
pub(super) fn problem_type(body: &[u8]) -> Option<String> {
    serde_json::from_slice(body).ok().map(|Refusal { kind }| kind)
}

impl Regions {
    /// Returns the forwarder of a request, by its token.
    pub(crate) fn forwarder(&self, token: &str) -> Result<Forwarder, jsonwebtoken::errors::Error> {
        self.tokens.check(token)
    }

    /// Returns the adoption of the lost region that a token claims to be from. Nothing in the token is verified.
    pub(crate) fn adoption_of_claimed(&self, token: &str) -> Option<Adoption> {
        self.adoption_of(self.tokens.claimed(token)?)
    }

    /// Sends a request of a client to a peer, and returns the beginning of the answer. Returns `Err(NoSuchRoute)`, and
    /// sends nothing, for a path that a URL parser reads as another path.
    pub(crate) async fn send(&self, peer: Region, client: Client, sent: Sent<'_>) -> Result<Response, Error> {
        let unavailable = |source| Error::RegionUnavailable { peer, source };
        let url = self.peers.url_of(peer, sent.path)?;
        let receiver = (peer, self.deployments.known(peer));
        let token = self.tokens.sign(receiver, client).map_err(PeerFault::Unsigned).map_err(unavailable)?;
        let answer = self.peers.send(url, &token, sent).await.map_err(unavailable)?;
        if is_from_server(answer.status(), answer.headers()) {
            self.note_answer(peer);
        }
        Ok(answer)
    }

    /// Sends a request of this region to a peer, and returns the whole answer. An answer of more than `bytes_max` bytes is
    /// cut off.
    pub(crate) async fn send_whole(
        &self,
        peer: Region,
        sent: Sent<'_>,
        bytes_max: usize,
    ) -> Result<WholeAnswer, Error> {
        let answer = self.send(peer, Client::default(), sent).await?;
        let whole = self.peers.whole(answer, bytes_max).await;
        whole.map_err(|source| Error::RegionUnavailable { peer, source })
    }

    /// Returns whether a peer is ready to answer.
    pub(crate) async fn is_reachable(&self, peer: Region) -> bool {
        self.answers_well(peer, "/readyz").await
    }

    /// Returns whether a process of a peer answers, ready or not. The question has no token, so a peer that refuses this
    /// region's keys is alive as well.
    pub(crate) async fn is_alive(&self, peer: Region) -> bool {
        match self.peers.url(peer) {
            Ok(url) => self.peers.is_alive(url).await,
            Err(_) => false,
        }
    }

    async fn answers_well(&self, peer: Region, path: &str) -> bool {
        let sent = Sent { method: Method::GET, path, headers: HeaderMap::new(), body: Default::default() };
        self.send(peer, Client::default(), sent).await.is_ok_and(|answer| answer.status().is_success())
    }

    /// Sends a question of this region itself to a peer, and returns status and body of the answer.
    pub(crate) async fn ask(
        &self,
        peer: Region,
        path: &str,
        question: &impl Serialize,
    ) -> Result<(u16, Vec<u8>), Error> {
        self.ask_at_length(peer, path, question, outbound::ANSWER_BYTES_MAX).await
    }

    /// Sends a question of this region itself to a peer, and returns the status and up to `bytes_max` bytes of the answer.
    pub(crate) async fn ask_at_length(
        &self,
        peer: Region,
        path: &str,
        question: &impl Serialize,
        bytes_max: usize,
    ) -> Result<(u16, Vec<u8>), Error> {
        let body = serde_json::to_vec(question).map_err(|error| Error::Unwritable(Box::new(error)))?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let sent = Sent { method: Method::POST, path, headers, body: body.into() };
        let WholeAnswer { status, body } = self.send_whole(peer, sent, bytes_max).await?;
        Ok((status, body))
    }
}
