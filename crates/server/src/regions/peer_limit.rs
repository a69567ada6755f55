//! The limit of requests that wait for other regions.
//!
//! A region that swallows packets holds each request for its pools until the time limit of forwarding. Without a limit,
//! such requests take every place of `server.requests_max` within seconds, and this region refuses requests for its own
//! pools.

use std::collections::HashMap;

use seatkeeper_core::Region;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::Regions;
use crate::error::Error;
use crate::outbound::PeerFault;
use crate::settings::RegionSettings;

/// The places for requests that wait for other regions: up to half of `server.requests_max` for each peer, and three
/// quarters for all peers together. A quarter is left for this region's own pools if every peer is silent.
pub(super) struct PeerLimit {
    all: Semaphore,
    each: HashMap<Region, Semaphore>,
}

/// A place, held while a request waits for the beginning of a peer's answer.
pub(crate) struct PeerPermit<'p> {
    _of_all: SemaphorePermit<'p>,
    _of_peer: SemaphorePermit<'p>,
}

impl PeerLimit {
    pub(super) fn new(settings: &RegionSettings, requests_max: usize) -> Self {
        let half = || Semaphore::new(requests_max.div_ceil(2));
        Self {
            all: Semaphore::new((requests_max * 3).div_ceil(4)),
            each: settings.peers.iter().map(|peer| (Region::new(peer.number), half())).collect(),
        }
    }
}

impl Regions {
    /// Takes a place for a client's request that waits for `peer`. Returns `Err(RegionUnavailable)` at once if all
    /// places are taken: the request was not sent, and nothing is known of the peer.
    pub(crate) fn wait_for(&self, peer: Region) -> Result<PeerPermit<'_>, Error> {
        let PeerLimit { all, each } = &self.waiting;
        let of_peer = each.get(&peer).ok_or(Error::RegionUnknown(peer))?.try_acquire();
        match (of_peer, all.try_acquire()) {
            (Ok(of_peer), Ok(of_all)) => Ok(PeerPermit { _of_all: of_all, _of_peer: of_peer }),
            (Ok(_) | Err(_), _) => Err(Error::RegionUnavailable { peer, source: PeerFault::TooManyWait }),
        }
    }
}
