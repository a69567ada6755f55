//! Home regions: a single region, the home, admits for a pool. `docs/regions.md` has the protocol and its invariants.
//!
//! `homes` caches homes, `moved_homes` keeps the homes that have moved, and `adoptions` knows the successors of lost
//! regions. `deployments` knows the deployments of the peers, `own_number` the answers of the peers about the own deployment,
//! and `record_reader` follows the records. `peers` sends requests to peer regions, `peer_limit` bounds the requests that wait
//! for peers, `peer_token` authenticates peers, and `heartbeat_batches` queues heartbeats for peers. `lookup` finds the home of a
//! request, `successors` leads from a lost region to its successor, `requests` asks peers, and `confirmation` asks the home on
//! record before another region's word of a move counts. `without_home` has the knowledge for admissions while a home is
//! unreachable.

mod adoptions;
mod confirmation;
mod deployments;
mod heartbeat_batches;
mod homes;
mod keys;
mod lookup;
mod moved_homes;
mod own_number;
mod peer_limit;
mod peer_token;
mod peers;
mod record_reader;
mod requests;
mod successors;
mod without_home;

use std::time::Duration;

use seatkeeper_core::{Region, RegistryTime};
use seatkeeper_engine::{Engine, WorkerSet};
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::homes::OwnRegion;
use serde::{Deserialize, Serialize};

use crate::auth::KeyError;
use crate::error::Error;
use crate::retry_after::wait_seconds;
use crate::settings::RegionSettings;
use adoptions::Adoptions;
pub(crate) use confirmation::{DepartureStep, HomeRecord, RECORD_PATH, RecordQuestion};
use deployments::Deployments;
pub(crate) use heartbeat_batches::{
    BATCH_BYTES_MAX, BEATS_MAX, BatchAnswer, HEARTBEATS_PATH, Heartbeat, HeartbeatAnswer, HeartbeatBatches,
    Outcome, Renewal, Step, TokenDigest, Waiting, body_of, settle, without_abandoned,
};
use homes::Homes;
use keys::{KeyFiles, RegionKeys};
pub(crate) use moved_homes::MovedHomesReader;
use own_number::OwnNumber;
pub(crate) use own_number::{DEPLOYMENTS_PATH, DeploymentAnswer, NumberChecker};
use peer_limit::PeerLimit;
use peer_token::PeerTokens;
pub(crate) use peer_token::{Client, Forwarder, REGION_TOKEN};
use peers::Peers;
pub(crate) use peers::{Sent, WholeAnswer};
pub(crate) use record_reader::RecordReader;
use without_home::HomesAway;
pub(crate) use without_home::{HomeTerms, REGION_TERMS, WithoutHome};

/// The beginning of the paths of a region's API for its peers.
pub(crate) const PEERS_PATH: &str = "/api/v1/regions/";

/// The path of an anchor's API for the homes of subscribers.
pub(crate) const HOMES_PATH: &str = "/api/v1/regions/homes";

/// The regions of a deployment: the own region, the cached homes, and the peers.
pub(crate) struct Regions {
    own: Region,
    names: Vec<(Region, String)>,
    homes: Homes,
    adoptions: Adoptions,
    deployments: Deployments,
    own_number: OwnNumber,
    peers: Peers,
    waiting: PeerLimit,
    tokens: PeerTokens,
    /// `None` if every heartbeat is forwarded by itself.
    heartbeats: Option<HeartbeatBatches>,
    /// `None` if no node admits in place of an unreachable home.
    homes_away: Option<HomesAway>,
}

/// The home of a subscriber.
#[derive(Serialize, Deserialize)]
pub(crate) struct HomeAnswer {
    pub(crate) region: u8,
    pub(crate) version: u64,
}

impl Regions {
    /// Returns the regions of the settings, for the region `own` of the ledger; `None` for a deployment without regions. Starts
    /// the workers that reload the keys.
    pub(crate) fn from_settings(
        settings: &RegionSettings,
        requests_max: usize,
        leeway: Duration,
        (ledger, own): (&Ledger, Option<&OwnRegion>),
        upkeep: &WorkerSet,
    ) -> Result<Option<Self>, KeyError> {
        let Some(own) = own else { return Ok(None) };
        let (regions, files) = Self::with_key_files(settings, requests_max, leeway, (ledger, own))?;
        keys::keep_up(files, upkeep);
        Ok(Some(regions))
    }

    /// Returns the regions of the settings, for the region `own` of the ledger. The keys are never read again.
    pub(crate) fn new(
        settings: &RegionSettings,
        requests_max: usize,
        leeway: Duration,
        (ledger, own): (&Ledger, &OwnRegion),
    ) -> Result<Self, KeyError> {
        Self::with_key_files(settings, requests_max, leeway, (ledger, own)).map(|(regions, _)| regions)
    }

    fn with_key_files(
        settings: &RegionSettings,
        requests_max: usize,
        leeway: Duration,
        (ledger, recorded): (&Ledger, &OwnRegion),
    ) -> Result<(Self, KeyFiles), KeyError> {
        let (keys, files) = RegionKeys::from_settings(settings)?;
        let own = recorded.region;
        let regions = Self {
            own,
            names: std::iter::once((own, settings.name.clone()))
                .chain(settings.peers.iter().map(|peer| (Region::new(peer.number), peer.name.clone())))
                .collect(),
            homes: Homes::new(settings, ledger.clone()),
            adoptions: Adoptions::new(ledger.clone()),
            peers: Peers::new(settings)?,
            waiting: PeerLimit::new(settings, requests_max),
            tokens: PeerTokens::new((own, recorded.deployment), keys, leeway),
            deployments: Deployments::new(ledger.clone()),
            own_number: OwnNumber::new(ledger.clone(), recorded),
            heartbeats: HeartbeatBatches::from_settings(settings),
            homes_away: HomesAway::from_settings(settings),
        };
        Ok((regions, files))
    }

    /// Returns this region.
    pub(crate) fn own(&self) -> Region {
        self.own
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

    /// Returns the batches of heartbeats; `None` if every heartbeat is forwarded by itself.
    pub(crate) fn heartbeats(&self) -> Option<&HeartbeatBatches> {
        self.heartbeats.as_ref()
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
