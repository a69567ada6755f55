//! Knowledge for admissions while the home of a subscriber is unreachable: the last terms of the home, and probes of the
//! home.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use axum::http::HeaderValue;
use quick_cache::sync::Cache;
use seatkeeper_core::{
    Policy, Region, RegistryTime, Seats, Span, Standing, TenantId, Terms, UserId, WhenFull,
};
use seatkeeper_ledger::homes::{Home, HomeState};
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex, MutexGuard};

use super::Regions;
use super::homes::HOMES_MAX;
use crate::error::Error;
use crate::outbound::PeerFault;
use crate::settings::{RegionSettings, WhenHomeDown};

/// The header in which a home tells a forwarding region the subscriber's terms.
pub(crate) const REGION_TERMS: &str = "seatkeeper-region-terms";

/// Pause between two probes of a region that may be away.
const PROBE_PAUSE: Duration = Duration::from_secs(1);

/// The longest wait of a request for a probe. A region that answers later counts as away.
const PROBE_WAIT_MAX: Duration = Duration::from_secs(1);

/// Terms of this version or above are no terms of an entitlement: the version of a pool closed for a move.
const VERSIONS_END: u64 = 1 << 52;

/// The mark of a request for the node to decide in place of the unreachable home.
#[derive(Clone, Copy)]
pub(crate) struct WithoutHome {
    /// The last terms of the home; `None` before the first answer of the home to this node.
    pub(crate) terms: Option<HomeTerms>,
}

/// A subscriber's terms, as the home tells them with the answer to a forwarded claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HomeTerms {
    version: u64,
    limit: u32,
    ttl_milliseconds: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ends_at_milliseconds: Option<u64>,
    evicts: bool,
}

impl HomeTerms {
    /// Returns the terms of a home's policy; `None` if the home cannot look up the plan.
    pub(crate) fn from_policy(policy: &Policy) -> Option<Self> {
        let Terms { version, limit, ttl, ends_at, .. } = policy.terms?;
        Some(Self {
            version,
            limit: limit.0,
            ttl_milliseconds: ttl.as_millis(),
            ends_at_milliseconds: ends_at.map(RegistryTime::as_millis),
            evicts: policy.when_full == WhenFull::Evict,
        })
    }

    /// Returns the value of the header [`REGION_TERMS`].
    pub(crate) fn to_header(self) -> Option<HeaderValue> {
        serde_json::to_string(&self).ok()?.parse().ok()
    }

    /// Returns `policy` with these terms.
    pub(crate) fn applied_to(self, policy: Policy) -> Policy {
        let terms = Terms {
            version: self.version,
            limit: Seats(self.limit),
            ttl: Span::from_millis(self.ttl_milliseconds),
            ends_at: self.ends_at_milliseconds.map(RegistryTime::from_millis),
            standing: Standing::Open,
        };
        let when_full = if self.evicts { WhenFull::Evict } else { WhenFull::Deny };
        Policy { terms: Some(terms), when_full, ..policy }
    }
}

/// The last terms told by homes, and the last probe of each peer.
pub(super) struct HomesAway {
    told: Cache<(TenantId, UserId), HomeTerms>,
    probes: HashMap<Region, Mutex<Option<Probe>>>,
}

/// The result of a probe.
#[derive(Clone, Copy)]
struct Probe {
    ended: Instant,
    is_away: bool,
}

impl HomesAway {
    /// Returns `None` if no node admits in place of an unreachable home.
    pub(super) fn from_settings(settings: &RegionSettings) -> Option<Self> {
        match settings.when_home_down {
            WhenHomeDown::Deny => None,
            WhenHomeDown::Allow => Some(Self {
                told: Cache::new(HOMES_MAX),
                probes: settings
                    .peers
                    .iter()
                    .map(|peer| (Region::new(peer.number), Mutex::default()))
                    .collect(),
            }),
        }
    }
}

impl Regions {
    /// Returns `true` if the settings let nodes admit devices in place of an unreachable home.
    pub(crate) fn admits_without_home(&self) -> bool {
        self.homes_away.is_some()
    }

    /// Notes the terms that the home of a subscriber tells.
    pub(crate) fn note_terms(&self, tenant: &TenantId, user: &UserId, header: &HeaderValue) {
        let Some(away) = &self.homes_away else { return };
        let terms = serde_json::from_slice(header.as_bytes()).ok();
        if let Some(terms) = terms.filter(|terms: &HomeTerms| terms.version < VERSIONS_END) {
            away.told.insert((tenant.clone(), user.clone()), terms);
        }
    }

    /// Returns the terms that the home of a subscriber has told last.
    pub(crate) fn told_terms(&self, tenant: &TenantId, user: &UserId) -> Option<HomeTerms> {
        self.homes_away.as_ref()?.told.get(&(tenant.clone(), user.clone()))
    }

    /// Returns the newest home of a subscriber, after the home `asked` was unreachable: by this region's record, and by the
    /// anchor if the anchor answers. `None` without a record. Returns `Err` for a home that moves or is being adopted.
    pub(crate) async fn recheck_home(
        &self,
        tenant: &TenantId,
        user: &UserId,
        asked: Region,
    ) -> Result<Option<Home>, Error> {
        self.homes.invalidate(tenant, user);
        let Some(known) = self.homes.known(tenant, user).await? else { return Ok(None) };
        let known = self.settled(tenant, user, known)?;
        let anchor = self.anchor_of(tenant).await?.region;
        if known.region != asked || anchor == asked || anchor == self.own {
            return Ok(Some(known));
        }
        if self.confirms_away(anchor).await {
            return Ok(Some(known));
        }
        match self.learn_from_anchor(anchor, tenant, user).await {
            // The anchor was not asked, and may know a newer home.
            Err(error @ Error::RegionUnavailable { source: PeerFault::TooManyWait, .. }) => Err(error),
            Err(Error::RegionUnavailable { .. }) => Ok(Some(known)),
            learnt => learnt.map(Some),
        }
    }

    /// Returns `Err(RegionUnavailable)` while the home of a subscriber is a peer, and the peer is away.
    pub(crate) async fn check_home_back(&self, tenant: &TenantId, user: &UserId) -> Result<(), Error> {
        let home = self.homes.known(tenant, user).await?;
        let home = home.filter(|home| home.state != HomeState::Moving).map(|home| self.present(home.region));
        match home.filter(|region| *region != self.own) {
            Some(peer) if self.is_away(peer).await => {
                let source = PeerFault::NotConnected("the region did not answer a probe".to_owned());
                Err(Error::RegionUnavailable { peer, source })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Returns `true` if no server of a peer answers a probe, which the call awaits. Called after a failed attempt to connect.
    pub(crate) async fn confirms_away(&self, peer: Region) -> bool {
        let Some(last) = self.last_probe(peer) else { return false };
        let mut last = last.lock().await;
        // An answer may be from before the attempt.
        *last = last.take().filter(|last| last.is_away);
        self.probe(peer, last).await
    }

    /// Notes that a server of a peer has answered: as good as a probe.
    pub(crate) fn note_answer(&self, peer: Region) {
        if let Some(Ok(mut last)) = self.last_probe(peer).map(Mutex::try_lock) {
            *last = Some(Probe { ended: Instant::now(), is_away: false });
        }
    }

    /// Returns `true` if no server of a peer answers, by a probe in the last second. A single request at a time probes the
    /// peer, and further requests do not wait.
    async fn is_away(&self, peer: Region) -> bool {
        match self.last_probe(peer).map(Mutex::try_lock) {
            Some(Ok(last)) => self.probe(peer, last).await,
            // A session in place of the home lives on until a probe succeeds.
            Some(Err(_)) => true,
            None => false,
        }
    }

    fn last_probe(&self, peer: Region) -> Option<&Mutex<Option<Probe>>> {
        self.homes_away.as_ref()?.probes.get(&peer)
    }

    /// Probes a peer, unless the last probe was less than a second ago, and returns `true` if the peer is away.
    async fn probe(&self, peer: Region, mut last: MutexGuard<'_, Option<Probe>>) -> bool {
        if let Some(last) = *last
            && last.ended.elapsed() < PROBE_PAUSE
        {
            return last.is_away;
        }
        let is_alive = tokio::time::timeout(PROBE_WAIT_MAX, self.is_alive(peer)).await.unwrap_or(false);
        *last = Some(Probe { ended: Instant::now(), is_away: !is_alive });
        !is_alive
    }
}
