//! Home regions: a single region, the home, admits for a pool. `docs/regions.md` has the protocol and its invariants.
//!
//! `homes` caches homes, `peers` sends requests to peer regions, `peer_token` authenticates peers, and `heartbeat_batches`
//! queues heartbeats for peers.

mod heartbeat_batches;
mod homes;
mod keys;
mod peer_token;
mod peers;

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, Response};
use seatkeeper_core::{Region, SessionId, TenantId, UserId};
use seatkeeper_engine::WorkerSet;
use seatkeeper_ledger::Ledger;
use serde::{Deserialize, Serialize};

use crate::auth::KeyError;
use crate::error::Error;
use crate::outbound::{self, PeerFault};
use crate::settings::RegionSettings;
pub(crate) use heartbeat_batches::{
    BATCH_BYTES_MAX, BEATS_MAX, HEARTBEATS_PATH, Heartbeat, HeartbeatBatches, Outcome, Renewal, Renewals,
    Step, TokenDigest, Waiting, body_of, settle, without_abandoned,
};
use homes::Homes;
use keys::RegionKeys;
use peer_token::PeerTokens;
pub(crate) use peer_token::{Client, Forwarder, REGION_TOKEN};
use peers::Peers;
pub(crate) use peers::{Sent, WholeAnswer};

/// The path of an anchor's API for the homes of subscribers.
pub(crate) const HOMES_PATH: &str = "/api/v1/regions/homes";

/// The regions of a deployment: the own region, the cached homes, and the peers.
pub(crate) struct Regions {
    own: Region,
    homes: Homes,
    peers: Peers,
    tokens: PeerTokens,
    /// `None` if every heartbeat is forwarded by itself.
    heartbeats: Option<HeartbeatBatches>,
}

/// The question for the home of a subscriber.
#[derive(Serialize)]
struct HomeQuestion<'a> {
    tenant: &'a str,
    user: &'a str,
}

/// The home of a subscriber.
#[derive(Serialize, Deserialize)]
pub(crate) struct HomeAnswer {
    pub(crate) region: u8,
}

impl Regions {
    /// Returns the regions of the settings; `None` for a deployment without regions. Starts the workers that reload the
    /// keys.
    pub(crate) fn from_settings(
        settings: &RegionSettings,
        leeway: Duration,
        ledger: &Ledger,
        upkeep: &WorkerSet,
    ) -> Result<Option<Self>, KeyError> {
        if settings.number == 0 {
            return Ok(None);
        }
        let (keys, files) = RegionKeys::from_settings(settings)?;
        keys::keep_up(files, upkeep);
        Ok(Some(Self {
            own: Region::new(settings.number),
            homes: Homes::new(settings, ledger.clone()),
            peers: Peers::new(settings)?,
            tokens: PeerTokens::new(Region::new(settings.number), keys, leeway),
            heartbeats: HeartbeatBatches::from_settings(settings),
        }))
    }

    /// Returns this region.
    pub(crate) fn own(&self) -> Region {
        self.own
    }

    /// Returns the anchor of a tenant: the anchor on record. Returns `Err(RegionSettingsDiffer)` if the settings name
    /// another anchor.
    pub(crate) async fn anchor_of(&self, tenant: &TenantId) -> Result<Region, Error> {
        self.homes.anchor_of(tenant).await
    }

    /// Returns the anchor of a tenant by the settings, without a record.
    pub(crate) fn named_anchor(&self, tenant: &TenantId) -> Region {
        self.homes.named_anchor(tenant)
    }

    /// Returns the home of a session, by the region in the id. `None` for the id of an unknown region. A session from
    /// before the deployment had regions is at home in the anchor.
    pub(crate) fn home_of_session(&self, id: SessionId) -> Option<Region> {
        let region = if id.region() == Region::default() { self.homes.common_anchor() } else { id.region() };
        (region == self.own || self.peers.has(region)).then_some(region)
    }

    /// Returns the home of a subscriber. A subscriber without a home gets this region, if the anchor agrees.
    pub(crate) async fn home_of(&self, tenant: &TenantId, user: &UserId) -> Result<Region, Error> {
        // The anchor is checked before the cache, so a region whose anchor contradicts the record admits nobody.
        let anchor = self.homes.anchor_of(tenant).await?;
        if let Some(home) = self.homes.known(tenant, user).await? {
            return Ok(home);
        }
        if anchor == self.own {
            return self.homes.assign(tenant, user, self.own, self.own).await;
        }
        // An anchor never assigns a home twice, so the answer is kept for good.
        let home = self.ask_anchor(anchor, tenant, user).await?;
        self.homes.assign(tenant, user, home, home).await
    }

    /// Returns the home of a subscriber, by this region as the anchor. A subscriber without a home gets `asker`.
    pub(crate) async fn assign_home(
        &self,
        tenant: &TenantId,
        user: &UserId,
        asker: Region,
    ) -> Result<Region, Error> {
        let anchor = self.homes.anchor_of(tenant).await?;
        if anchor != self.own {
            let tenant = tenant.clone();
            return Err(Error::RegionSettingsDiffer { tenant, recorded: anchor, named: self.own });
        }
        match self.homes.known(tenant, user).await? {
            Some(home) => Ok(home),
            None => self.homes.assign(tenant, user, asker, self.own).await,
        }
    }

    /// Returns the forwarder of a request, by its token.
    pub(crate) fn forwarder(&self, token: &str) -> Result<Forwarder, jsonwebtoken::errors::Error> {
        self.tokens.check(token)
    }

    /// Sends a request of a client to a peer, and returns the beginning of the answer.
    pub(crate) async fn send(&self, peer: Region, client: Client, sent: Sent<'_>) -> Result<Response, Error> {
        let unavailable = |source| Error::RegionUnavailable { peer, source };
        let url = self.peers.url(peer)?;
        let token = self.tokens.sign(peer, client).map_err(PeerFault::Unsigned).map_err(unavailable)?;
        self.peers.send(url, &token, sent).await.map_err(unavailable)
    }

    /// Returns the batches of heartbeats; `None` if every heartbeat is forwarded by itself.
    pub(crate) fn heartbeats(&self) -> Option<&HeartbeatBatches> {
        self.heartbeats.as_ref()
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

    /// Asks the anchor for the home of a subscriber.
    async fn ask_anchor(&self, anchor: Region, tenant: &TenantId, user: &UserId) -> Result<Region, Error> {
        let question = HomeQuestion { tenant: tenant.as_str(), user: user.as_str() };
        let body = serde_json::to_vec(&question).map_err(|error| Error::Unwritable(Box::new(error)))?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let sent = Sent { method: Method::POST, path: HOMES_PATH, headers, body: body.into() };
        let answer = self.send(anchor, Client::default(), sent).await?;
        let status = answer.status().as_u16();
        let body = outbound::beginning(answer).await;
        match serde_json::from_slice(&body) {
            Ok(HomeAnswer { region: region @ 1.. }) if status == 200 => Ok(Region::new(region)),
            Ok(_) | Err(_) => {
                Err(Error::RegionUnavailable { peer: anchor, source: PeerFault::refused(status, &body) })
            }
        }
    }
}
