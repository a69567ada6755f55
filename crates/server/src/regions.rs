//! Home regions: a single region, the home, admits for a pool. `docs/regions.md` has the protocol and its invariants.
//!
//! `homes` caches homes, `adoptions` knows the successors of lost regions, `peers` sends requests to peer regions,
//! `peer_token` authenticates peers, and `heartbeat_batches` queues heartbeats for peers.

mod adoptions;
mod heartbeat_batches;
mod homes;
mod keys;
mod peer_token;
mod peers;

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, Response};
use seatkeeper_core::{Region, RegistryTime, SessionId, TenantId, UserId};
use seatkeeper_engine::{Engine, WorkerSet};
use seatkeeper_ledger::homes::{Adoption, Home, HomeState};
use seatkeeper_ledger::{Error as LedgerError, Ledger};
use serde::{Deserialize, Serialize};

use crate::auth::KeyError;
use crate::error::Error;
use crate::outbound::{self, PeerFault};
use crate::retry_after::wait_seconds;
use crate::settings::RegionSettings;
pub(crate) use adoptions::AdoptionReader;
use adoptions::Adoptions;
pub(crate) use heartbeat_batches::{
    BATCH_BYTES_MAX, BEATS_MAX, HEARTBEATS_PATH, Heartbeat, HeartbeatBatches, Outcome, Renewal, Renewals,
    Step, TokenDigest, Waiting, body_of, settle, without_abandoned,
};
use homes::Homes;
use keys::{KeyFiles, RegionKeys};
use peer_token::PeerTokens;
pub(crate) use peer_token::{Client, Forwarder, REGION_TOKEN};
use peers::Peers;
pub(crate) use peers::{Sent, WholeAnswer};

/// The path of an anchor's API for the homes of subscribers.
pub(crate) const HOMES_PATH: &str = "/api/v1/regions/homes";

/// The type of the problem of a pool that is being adopted.
const REGION_ADOPTING_TYPE: &str = "/problems/region-adopting";

/// The regions of a deployment: the own region, the cached homes, and the peers.
pub(crate) struct Regions {
    own: Region,
    names: Vec<(Region, String)>,
    homes: Homes,
    adoptions: Adoptions,
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

/// The type of a problem in a refusal.
#[derive(Deserialize)]
struct Refusal {
    #[serde(rename = "type")]
    kind: String,
}

/// The home of a subscriber.
#[derive(Serialize, Deserialize)]
pub(crate) struct HomeAnswer {
    pub(crate) region: u8,
    pub(crate) version: u64,
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
        let (regions, files) = Self::with_key_files(settings, leeway, ledger)?;
        keys::keep_up(files, upkeep);
        Ok(Some(regions))
    }

    /// Returns the regions of the settings. The keys are never read again.
    pub(crate) fn new(
        settings: &RegionSettings,
        leeway: Duration,
        ledger: &Ledger,
    ) -> Result<Self, KeyError> {
        Self::with_key_files(settings, leeway, ledger).map(|(regions, _)| regions)
    }

    fn with_key_files(
        settings: &RegionSettings,
        leeway: Duration,
        ledger: &Ledger,
    ) -> Result<(Self, KeyFiles), KeyError> {
        let (keys, files) = RegionKeys::from_settings(settings)?;
        let own = Region::new(settings.number);
        let regions = Self {
            own,
            names: std::iter::once((own, settings.name.clone()))
                .chain(settings.peers.iter().map(|peer| (Region::new(peer.number), peer.name.clone())))
                .collect(),
            homes: Homes::new(settings, ledger.clone()),
            adoptions: Adoptions::new(ledger.clone()),
            peers: Peers::new(settings)?,
            tokens: PeerTokens::new(own, keys, leeway),
            heartbeats: HeartbeatBatches::from_settings(settings),
        };
        Ok((regions, files))
    }

    /// Returns this region.
    pub(crate) fn own(&self) -> Region {
        self.own
    }

    /// Returns the home of a tenant's licenses: the anchor on record, or the successor of a lost anchor. Returns
    /// `Err(RegionSettingsDiffer)` if the settings name another anchor.
    pub(crate) async fn anchor_of(&self, tenant: &TenantId) -> Result<Home, Error> {
        let anchor = self.homes.anchor_of(tenant).await?;
        self.check_adopted(anchor)?;
        let own = self.adoptions.last_for(anchor).filter(|adoption| adoption.successor == self.own);
        let admits_from = own.map(|adoption| adoption.admits_from);
        Ok(Home { admits_from, ..Home::first(self.present(anchor)) })
    }

    /// Returns the region that serves the pools of `region`: the region itself, or the successor of a lost region.
    pub(crate) fn present(&self, region: Region) -> Region {
        self.adoptions.last_for(region).map_or(region, |adoption| adoption.successor)
    }

    /// Returns the adoption of a lost region.
    pub(crate) fn adoption_of(&self, lost: Region) -> Option<Adoption> {
        self.adoptions.of_lost(lost)
    }

    /// Returns the lost regions whose chain of successors leads to region `lost`, without `lost`.
    pub(crate) fn adopted_by(&self, lost: Region) -> Vec<Region> {
        self.adoptions.leading_to(lost)
    }

    /// Returns whether the pools of a tenant's licenses are in region `lost`: the tenant's anchor is `lost`, or a region that
    /// `lost` had adopted.
    pub(crate) async fn was_anchor(&self, lost: Region, tenant: &TenantId) -> Result<bool, Error> {
        let anchor = self.homes.anchor_of(tenant).await?;
        Ok(anchor == lost || self.adopted_by(lost).contains(&anchor))
    }

    /// Returns the numbers of every lost region and its successor.
    pub(crate) fn adopted(&self) -> Vec<(u8, u8)> {
        let pair = |adoption: &Adoption| (adoption.lost.number(), adoption.successor.number());
        self.adoptions.known().iter().map(pair).collect()
    }

    /// Returns the adoptions on record by this region, done or not.
    pub(crate) fn adoptions_by_own(&self) -> Vec<Adoption> {
        self.adoptions.known().iter().filter(|adoption| adoption.successor == self.own).copied().collect()
    }

    /// Reads the adoptions on record now, and drops every cached home.
    pub(crate) async fn refresh_adoptions(&self) -> Result<(), LedgerError> {
        self.adoptions.refresh().await?;
        self.homes.clear();
        Ok(())
    }

    /// Returns `Err(RegionAdopting)` if this region takes over the pools of `region`, and has not all of them yet.
    pub(crate) fn check_adopted(&self, region: Region) -> Result<(), Error> {
        match self.adoptions.last_for(region) {
            Some(adoption) if adoption.successor == self.own && !adoption.is_done => {
                Err(Error::RegionAdopting { lost: region })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Returns the region with this number or name, this region included.
    pub(crate) fn named(&self, text: &str) -> Option<Region> {
        self.names
            .iter()
            .find(|(region, name)| text == name || text == region.to_string())
            .map(|(region, _)| *region)
    }

    /// Returns every region with its name, this region first.
    pub(crate) fn names(&self) -> &[(Region, String)] {
        &self.names
    }

    /// Returns the anchor of a tenant by the settings, without a record, or the successor of a lost anchor.
    pub(crate) fn named_anchor(&self, tenant: &TenantId) -> Result<Region, Error> {
        let anchor = self.homes.named_anchor(tenant);
        self.check_adopted(anchor)?;
        Ok(self.present(anchor))
    }

    /// Returns the anchor of a tenant by the settings alone.
    pub(crate) fn named_anchor_of(&self, tenant: &TenantId) -> Region {
        self.homes.named_anchor(tenant)
    }

    /// Returns the home of a session, by the region in the id. `None` for the id of an unknown region. A session from
    /// before the deployment had regions is at home in the anchor. A session of a lost region is at home in the successor.
    pub(crate) fn home_of_session(&self, id: SessionId) -> Option<Region> {
        let region = self.present(self.origin_of(id));
        (region == self.own || self.peers.has(region)).then_some(region)
    }

    /// Returns `Err(RegionAdopting)` for a session of a lost region whose pools are not all here yet.
    pub(crate) fn check_session(&self, id: SessionId) -> Result<(), Error> {
        self.check_adopted(self.origin_of(id))
    }

    /// Returns the region in which a session began.
    fn origin_of(&self, id: SessionId) -> Region {
        if id.region() == Region::default() { self.homes.common_anchor() } else { id.region() }
    }

    /// Returns the home of a device's session, by the session's id and by the home of the subscriber who asks. A home
    /// that has moved keeps the ids of its sessions, so the subscriber's home counts if it has ever moved.
    pub(crate) async fn home_of_held(
        &self,
        tenant: &TenantId,
        user: &UserId,
        id: SessionId,
    ) -> Result<Option<Home>, Error> {
        let Some(by_id) = self.home_of_session(id) else { return Ok(None) };
        if !self.homes.has_moves().await && self.origin_of(id) == by_id {
            return Ok(Some(Home::first(by_id)));
        }
        // If the ledger is unreachable, the id decides: the pool stays closed in any other region than the home.
        let home = self.homes.known(tenant, user).await.unwrap_or_default();
        match home
            .filter(|home| home.version > Home::FIRST_VERSION || self.present(home.region) != home.region)
        {
            Some(home) => self.settled(tenant, user, home).map(Some),
            None => self.check_session(id).map(|()| Some(Home::first(by_id))),
        }
    }

    /// Returns `Err(AdoptedSilent)` while this region is the successor of `anchor`, and admits nobody yet. A subscriber
    /// without a home may have a live session in the lost region, on no record.
    async fn check_anchor_silence(&self, anchor: Region, engine: &Engine) -> Result<(), Error> {
        let adoption = self.adoptions.last_for(anchor).filter(|adoption| adoption.successor == self.own);
        match adoption {
            Some(adoption) => check_silence(engine, adoption.admits_from).await,
            None => Ok(()),
        }
    }

    /// Returns the home of a subscriber. A subscriber without a home gets this region, if the anchor agrees. The `engine`
    /// has the registry's time, for the silence after an adoption.
    pub(crate) async fn home_of(
        &self,
        tenant: &TenantId,
        user: &UserId,
        engine: &Engine,
    ) -> Result<Home, Error> {
        // The anchor is checked before the cache, so a region whose anchor contradicts the record admits nobody.
        let anchor = self.homes.anchor_of(tenant).await?;
        if let Some(home) = self.homes.known(tenant, user).await? {
            return self.settled(tenant, user, home);
        }
        self.check_adopted(anchor)?;
        let recorded = anchor;
        let anchor = self.present(recorded);
        if anchor == self.own {
            self.check_anchor_silence(recorded, engine).await?;
            return self.homes.assign(tenant, user, self.own, self.own).await;
        }
        match self.ask_anchor(anchor, tenant, user).await? {
            // The first home is kept, unless a move has replaced it meanwhile.
            (home, Home::FIRST_VERSION) => self.homes.assign(tenant, user, home, home).await,
            told => self.learn(tenant, user, told).await,
        }
    }

    /// Takes over a newer home of a subscriber from another region, and returns the home on record. Another region's word
    /// never makes this region the home: only a move or the anchor's first assignment does.
    pub(crate) async fn learn(
        &self,
        tenant: &TenantId,
        user: &UserId,
        told: (Region, u64),
    ) -> Result<Home, Error> {
        let home = match told.0 == self.own {
            true => {
                self.homes.forget(tenant, user);
                self.homes.known(tenant, user).await?
            }
            false => self.homes.learn(tenant, user, told, self.own).await?,
        };
        let home = home.filter(|home| home.region != self.own || home.version >= told.1);
        self.settled(tenant, user, home.ok_or_else(|| moving(tenant, user))?)
    }

    /// Drops the cached home of a subscriber, so that the next look reads the record.
    pub(crate) fn invalidate(&self, tenant: &TenantId, user: &UserId) {
        self.homes.invalidate(tenant, user);
    }

    /// Returns `Ok` if a home may leave region `from` for this region: the home is on record in `from`, here or in the
    /// anchor. So no peer can take a home that is here or in a third region.
    pub(crate) async fn check_departure(
        &self,
        tenant: &TenantId,
        user: &UserId,
        from: Region,
    ) -> Result<(), Error> {
        self.homes.invalidate(tenant, user);
        let known = self.homes.known(tenant, user).await?;
        let anchor = self.anchor_of(tenant).await?.region;
        let is_there = match known {
            Some(home) if home.region == from => true,
            Some(home) if home.region == self.own => false,
            Some(_) | None if anchor == self.own => false,
            Some(_) | None => anchor == from || self.ask_anchor(anchor, tenant, user).await?.0 == from,
        };
        if is_there {
            return Ok(());
        }
        let detail = "The subscriber's home is not in the region that hands the home over.";
        Err(Error::HomeNotMovable(detail.to_owned()))
    }

    /// Drops the cached home of a subscriber, because the home has moved.
    pub(crate) fn forget(&self, tenant: &TenantId, user: &UserId) {
        self.homes.forget(tenant, user);
    }

    /// Returns the home of a subscriber, by this region as the anchor. A subscriber without a home gets `asker`.
    pub(crate) async fn assign_home(
        &self,
        tenant: &TenantId,
        user: &UserId,
        asker: Region,
        engine: &Engine,
    ) -> Result<Home, Error> {
        self.check_anchor(tenant).await?;
        if let Some(home) = self.homes.known(tenant, user).await? {
            return self.settled(tenant, user, home);
        }
        self.check_anchor_silence(self.homes.anchor_of(tenant).await?, engine).await?;
        self.homes.assign(tenant, user, asker, self.own).await
    }

    /// Returns `Err(RegionSettingsDiffer)` unless this region is the anchor of the tenant.
    pub(crate) async fn check_anchor(&self, tenant: &TenantId) -> Result<(), Error> {
        let anchor = self.anchor_of(tenant).await?.region;
        if anchor == self.own {
            return Ok(());
        }
        Err(Error::RegionSettingsDiffer { tenant: tenant.clone(), recorded: anchor, named: self.own })
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

    /// Asks the anchor for the home of a subscriber, and returns region and version. Returns `Err(RegionAdopting)` while the
    /// successor of a lost anchor assigns no homes.
    async fn ask_anchor(
        &self,
        anchor: Region,
        tenant: &TenantId,
        user: &UserId,
    ) -> Result<(Region, u64), Error> {
        let question = HomeQuestion { tenant: tenant.as_str(), user: user.as_str() };
        let (status, body) = self.ask(anchor, HOMES_PATH, &question).await?;
        match serde_json::from_slice(&body) {
            Ok(HomeAnswer { region: region @ 1.., version }) if status == 200 => {
                Ok((Region::new(region), version))
            }
            Ok(_) | Err(_) => {
                let refusal: Option<Refusal> = serde_json::from_slice(&body).ok();
                if status == 503 && refusal.is_some_and(|refusal| refusal.kind == REGION_ADOPTING_TYPE) {
                    return Err(Error::RegionAdopting { lost: self.homes.anchor_of(tenant).await? });
                }
                Err(Error::RegionUnavailable { peer: anchor, source: PeerFault::refused(status, &body) })
            }
        }
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

    /// Returns a home that is not on its way to another region. The home of a lost region is in the successor, once the
    /// successor has the home on record.
    fn settled(&self, tenant: &TenantId, user: &UserId, home: Home) -> Result<Home, Error> {
        let region = self.present(home.region);
        match home.state {
            HomeState::Moving => Err(moving(tenant, user)),
            HomeState::Here | HomeState::Moved if region == self.own && region != home.region => {
                self.homes.invalidate(tenant, user);
                Err(Error::RegionAdopting { lost: home.region })
            }
            HomeState::Here | HomeState::Moved => Ok(Home { region, ..home }),
        }
    }
}

/// Returns `Err(AdoptedSilent)` before `admits_from`, by the registry's time: sessions that are on no record may live.
pub(crate) async fn check_silence(engine: &Engine, admits_from: RegistryTime) -> Result<(), Error> {
    let now = engine.now().await?;
    if now >= admits_from {
        return Ok(());
    }
    Err(Error::AdoptedSilent { wait_seconds: wait_seconds(Some(admits_from.since(now))) })
}

fn moving(tenant: &TenantId, user: &UserId) -> Error {
    Error::HomeMoving { tenant: tenant.clone(), user: user.clone() }
}
