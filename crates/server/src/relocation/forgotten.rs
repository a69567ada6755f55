//! Forgotten homes: after a restore of an older backup, or the promotion of a standby without the latest commits, the
//! ledger of a region lacks moves, and the ledger of an anchor lacks assignments.
//!
//! Regions tell their peers their homes, in the order of the last change. The position in the order of a peer is on
//! record in the ledger of the asking region. A restored ledger has an older position, and so asks from there.

use std::time::Duration;

use futures_util::future::join_all;
use garde::Validate;
use seatkeeper_core::Region;
use seatkeeper_ledger::homes::{Home, HomeState, HomesCursor, HomesHere, KnownHome};
use serde::{Deserialize, Serialize};

use super::Mover;
use super::adoption_messages::{MESSAGE_BYTES_MAX, ToldHome};
use crate::error::Error;
use crate::outbound::PeerFault;

/// The path at which a region tells its homes.
pub(crate) const HERE_PATH: &str = "/api/v1/regions/homes/here";

/// Homes of a page: the longest names fit in a message.
const PAGE: u32 = 500;

/// Pages that a run of the job asks a region for. The next run goes on.
const PAGES_OF_RUN: usize = 20;

/// Time limit of the questions in a run of the job.
const RUN_MAX: Duration = Duration::from_secs(20);

/// Time limit of the questions at a start.
const START_MAX: Duration = Duration::from_secs(5);

/// The question for a page of the homes in a region.
#[derive(Serialize, Deserialize, Validate)]
pub(crate) struct HereQuestion {
    /// The position of the last home of the page before.
    #[garde(skip)]
    after: HomesCursor,
}

/// A page of the homes in a region, in the order of their last change.
#[derive(Serialize, Deserialize)]
pub(crate) struct HerePage {
    homes: Vec<ToldHome>,
    /// The position of the last home.
    last: HomesCursor,
    /// The latest position on the page behind which no home may appear later.
    settled: HomesCursor,
    /// No home follows.
    is_last: bool,
}

/// The consequence of a home in a peer.
#[derive(Debug, PartialEq, Eq)]
enum Consequence {
    /// The home is on record, or a newer home, or needs no record.
    Nothing,
    /// The home goes on record.
    Learn,
    /// The move of the home out of this region is forgotten.
    Move,
    /// Both regions have the same version.
    Conflict,
}

impl Mover {
    /// Returns a page of the homes in this region.
    pub(crate) async fn homes_here(&self, ask: HereQuestion) -> Result<HerePage, Error> {
        let page = self.ledger.homes_here_after(self.regions.own(), &ask.after, PAGE).await;
        let HomesHere { homes, last, settled } = page.map_err(Error::Ledger)?;
        let is_last = homes.len() < PAGE as usize;
        Ok(HerePage { homes: homes.iter().map(ToldHome::from).collect(), last, settled, is_last })
    }

    /// Learns forgotten homes from the peers before this region serves. The job `moves` asks a silent peer again.
    pub(crate) async fn learn_at_start(&self) {
        self.learn_pages(usize::MAX, START_MAX).await;
    }

    /// Learns forgotten homes from the peers, for a run of the job `moves`. The next run asks a silent peer again.
    pub(super) async fn learn_forgotten(&self) {
        self.learn_pages(PAGES_OF_RUN, RUN_MAX).await;
    }

    /// Asks every peer for up to `pages` pages, for up to `time_max`.
    async fn learn_pages(&self, pages: usize, time_max: Duration) {
        let learning = self.regions.living_peers().map(async |(region, name)| {
            let learnt = tokio::time::timeout(time_max, self.learn_from(region, pages)).await;
            let cause = match learnt {
                Ok(learnt) => learnt.err().map(|error| error.with_causes()),
                Err(_) => Some("no answer in time".to_owned()),
            };
            self.note_told(region, name, cause);
        });
        join_all(learning).await;
    }

    /// Logs that a peer does not tell its homes for `cause`, or tells them again.
    fn note_told(&self, peer: Region, name: &str, cause: Option<String>) {
        let mut silent = self.silent_peers.lock();
        match cause {
            None if silent.remove(&peer) => {
                tracing::info!(peer = name, "a peer tells its homes again: forgotten moves have been learnt");
            }
            Some(causes) if silent.insert(peer) => {
                tracing::warn!(
                    peer = name,
                    causes,
                    "a peer does not tell its homes: if this ledger is restored from an older backup, two regions may admit \
                     for a subscriber whose home has moved to the peer since; the job `moves` asks again every 5 s: bring the \
                     peer back"
                );
            }
            None | Some(_) => {}
        }
    }

    /// Learns the homes in `peer` after the position on record, up to `pages` pages.
    async fn learn_from(&self, peer: Region, pages: usize) -> Result<(), Error> {
        let mut position = self.ledger.last_learnt_home(peer).await.map_err(Error::Ledger)?;
        let mut after = position.clone();
        for _ in 0..pages {
            let page = self.ask_homes_here(peer, after).await?;
            for told in page.homes {
                self.learn_one(peer, &KnownHome::from(told)).await?;
            }
            if page.settled > position {
                position = page.settled;
                self.ledger.note_learnt_home(peer, &position).await.map_err(Error::Ledger)?;
            }
            if page.is_last {
                break;
            }
            after = page.last;
        }
        Ok(())
    }

    async fn ask_homes_here(&self, peer: Region, after: HomesCursor) -> Result<HerePage, Error> {
        let question = HereQuestion { after };
        let (status, body) =
            self.regions.ask_at_length(peer, HERE_PATH, &question, MESSAGE_BYTES_MAX).await?;
        match serde_json::from_slice(&body) {
            Ok(page) if status == 200 => Ok(page),
            Ok(_) | Err(_) => {
                Err(Error::RegionUnavailable { peer, source: PeerFault::refused(status, &body) })
            }
        }
    }

    /// Learns a home in `peer` if this region has forgotten the home.
    async fn learn_one(&self, peer: Region, told: &KnownHome) -> Result<(), Error> {
        let KnownHome { tenant, user, home } = told;
        // A peer tells only homes in the peer.
        if home.region != peer {
            return Ok(());
        }
        let own = self.regions.own();
        let known = self.ledger.home(tenant, user).await.map_err(Error::Ledger)?;
        let is_anchor = || self.regions.named_anchor(tenant).is_ok_and(|anchor| anchor == own);
        match consequence(own, known, home, is_anchor) {
            Consequence::Nothing => return Ok(()),
            Consequence::Learn => {
                let newer = (peer, home.version);
                let learnt = self.ledger.learn_home(tenant, user, newer, own).await.map_err(Error::Ledger)?;
                if learnt.is_none_or(|learnt| learnt.region != peer && learnt.version <= home.version) {
                    // Another node has assigned the home meanwhile. The position stays, so the next run looks again.
                    return Err(Error::HomeMoving { tenant: tenant.clone(), user: user.clone() });
                }
            }
            Consequence::Move => {
                let newer = (peer, home.version);
                let begun = self.ledger.begin_forgotten_move(tenant, user, own, newer).await;
                if begun.map_err(Error::Ledger)? {
                    tracing::warn!(
                        tenant = tenant.as_str(),
                        user = user.as_str(),
                        region = peer.number(),
                        version = home.version,
                        "this ledger has forgotten the move of a home, as after a restore: the region has the home, and this \
                         region gives up the older sessions"
                    );
                }
            }
            Consequence::Conflict => {
                tracing::error!(
                    tenant = tenant.as_str(),
                    user = user.as_str(),
                    region = peer.number(),
                    version = home.version,
                    "two regions have the home of a subscriber, and both admit: the anchor has assigned the home twice, as \
                     after a restore; raise the version of the home in the ledger of the region to keep"
                );
            }
        }
        self.regions.invalidate(tenant, user);
        Ok(())
    }
}

/// Returns the consequence of the home `told` in a peer, for the home `known` on record in region `own`.
fn consequence(own: Region, known: Option<Home>, told: &Home, is_anchor: impl Fn() -> bool) -> Consequence {
    match known {
        None if is_anchor() => Consequence::Learn,
        Some(known) if known.state == HomeState::Moving || known.version > told.version => {
            Consequence::Nothing
        }
        Some(known) if known.region == own && known.version == told.version => Consequence::Conflict,
        Some(known) if known.version == told.version => Consequence::Nothing,
        Some(known) if known.admits(own) => Consequence::Move,
        // The anchor learns of a move from the home on its record alone. A region that the anchor leads to the home on
        // record follows the newer home from there.
        Some(_) if is_anchor() => Consequence::Nothing,
        Some(_) => Consequence::Learn,
        // A region that is not the anchor asks the anchor when a request needs the home.
        None => Consequence::Nothing,
    }
}

#[cfg(test)]
mod tests;
