//! The trail of a single subscriber's home through the regions.

use std::collections::HashMap;

use seatkeeper_core::{Region, UserId};

use super::{HomeMove, HomeMoveKind, RegionBreach};
use crate::homes::Home;

/// The moves on record of a subscriber's home.
#[derive(Debug, Default)]
pub(super) struct Trail<'a> {
    /// Each arrival with its target. Adoptions are arrivals.
    arrivals: Vec<(Region, &'a HomeMove)>,
    /// Each departure, by the region left and the version in the target.
    departures: HashMap<(Region, u64), &'a HomeMove>,
    /// Each forgotten move with the region left. The numbers in the arrival belong to records that a restore has lost.
    forgotten: Vec<(Region, &'a HomeMove)>,
}

/// The numbers of events within which a region may admit to a pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tenure {
    region: Region,
    version: u64,
    after: u64,
    /// `None`: the region is still the home.
    through: Option<u64>,
}

impl Tenure {
    /// Returns whether `region` was the home at the pool's event `seq`.
    pub(super) fn covers(&self, region: Region, seq: u64) -> bool {
        self.region == region && self.after < seq && self.through.is_none_or(|through| seq <= through)
    }

    /// Ends the tenure by the event `seq`, unless an earlier event ends the tenure.
    fn cap(&mut self, seq: u64) {
        self.through = Some(self.through.map_or(seq, |through| through.min(seq)));
    }
}

impl<'a> Trail<'a> {
    /// Adds a move on record in `region`.
    pub(super) fn add(&mut self, region: Region, moved: &'a HomeMove) {
        match moved.kind {
            HomeMoveKind::Left => drop(self.departures.insert((region, moved.version), moved)),
            HomeMoveKind::Forgotten => self.forgotten.push((region, moved)),
            HomeMoveKind::Arrived { .. } | HomeMoveKind::Adopted { .. } => {
                self.arrivals.push((region, moved))
            }
        }
    }

    /// Sorts the arrivals by version, and returns their number.
    pub(super) fn sort(&mut self) -> u64 {
        self.arrivals.sort_unstable_by_key(|(region, arrival)| (arrival.version, region.number()));
        self.arrivals.len() as u64
    }

    /// Returns the tenures of every home, in the order of versions. Every tenure but the last has an end on record.
    /// Records may be missing in the regions `lost`.
    pub(super) fn tenures(&self, user: &UserId, lost: &[Region]) -> Result<Vec<Tenure>, RegionBreach> {
        self.check_arrivals_differ(user)?;
        for ((from, _), left) in &self.departures {
            if !self.is_forgotten(*from, left.version) {
                self.check_departure(*from, left, lost)?;
            }
        }
        let mut tenures: Vec<Tenure> = self.origin(user, lost)?.into_iter().collect();
        for (region, arrival) in &self.arrivals {
            if let Some(last) = tenures.last_mut() {
                last.through = Some(self.end_of(last, (*region, arrival), user, lost)?);
            }
            if let HomeMoveKind::Adopted { peer_seq: Some(read) } = arrival.kind {
                cap(&mut tenures, arrival.peer, read);
            }
            let (version, after) = (arrival.version, arrival.seq);
            tenures.push(Tenure { region: *region, version, after, through: None });
        }
        for (region, forgotten) in &self.forgotten {
            // A journal replayed after the begin has events from before the move.
            let left = self.departures.get(&(*region, forgotten.version));
            let last = left.map_or(forgotten.seq, |left| left.seq);
            let older = tenures.iter_mut().filter(|tenure| tenure.version < forgotten.version);
            older.filter(|tenure| tenure.region == *region).for_each(|tenure| tenure.cap(last));
        }
        Ok(tenures)
    }

    fn is_forgotten(&self, from: Region, version: u64) -> bool {
        self.forgotten.iter().any(|(region, forgotten)| *region == from && forgotten.version == version)
    }

    fn check_arrivals_differ(&self, user: &UserId) -> Result<(), RegionBreach> {
        match self.arrivals.windows(2).find(|pair| pair[0].1.version == pair[1].1.version) {
            Some(pair) => Err(RegionBreach::TwoArrivals {
                user: user.clone(),
                version: pair[0].1.version,
                first: pair[0].0,
                second: pair[1].0,
            }),
            None => Ok(()),
        }
    }

    /// Returns the first home on record: the region that the oldest move left. The home began there, or the records of
    /// older moves are lost with that region.
    fn origin(&self, user: &UserId, lost: &[Region]) -> Result<Option<Tenure>, RegionBreach> {
        let arrivals = self.arrivals.iter().map(|(to, arrival)| (arrival.version, arrival.peer, *to));
        let departures = self.departures.iter().map(|((from, version), left)| (*version, *from, left.peer));
        let Some((version, from, to)) = arrivals.chain(departures).min_by_key(|(version, ..)| *version)
        else {
            return Ok(None);
        };
        let first = version.saturating_sub(1);
        if first > Home::FIRST_VERSION && !lost.contains(&from) {
            return Err(RegionBreach::Unjoined { user: user.clone(), version, from, to });
        }
        Ok(Some(Tenure { region: from, version: first, after: 0, through: None }))
    }

    /// Returns the number of the last event of a tenure, which the arrival `next` follows. Returns `Err(Unjoined)` if the
    /// region of the tenure may still be the home, or if records are missing that no lost region can have lost.
    fn end_of(
        &self,
        last: &Tenure,
        (to, next): (Region, &HomeMove),
        user: &UserId,
        lost: &[Region],
    ) -> Result<u64, RegionBreach> {
        let peer_is_lost = lost.contains(&next.peer);
        let end = match next.kind {
            // A gap between the versions: the moves between the two are on record in lost regions alone.
            HomeMoveKind::Arrived { peer_seq }
                if last.region == next.peer && (next.version == last.version + 1 || peer_is_lost) =>
            {
                Some(peer_seq)
            }
            HomeMoveKind::Adopted { peer_seq } if last.region == next.peer => {
                Some(peer_seq.unwrap_or(u64::MAX))
            }
            // The record of the move into the lost region is lost as well: the departure ends the tenure. A lost region may
            // lack the departure too, and `cap` ends its tenure.
            HomeMoveKind::Arrived { .. } | HomeMoveKind::Adopted { .. } if peer_is_lost => {
                let left = self.departures.get(&(last.region, last.version + 1)).map(|left| left.seq);
                left.or_else(|| lost.contains(&last.region).then_some(u64::MAX))
            }
            HomeMoveKind::Arrived { .. }
            | HomeMoveKind::Adopted { .. }
            | HomeMoveKind::Left
            | HomeMoveKind::Forgotten => None,
        };
        let (from, version) = (next.peer, next.version);
        end.ok_or_else(|| RegionBreach::Unjoined { user: user.clone(), version, from, to })
    }

    /// Checks that the target of a departure has a fitting arrival on record. The arrival in a lost
    /// region may be missing: then another region has a later home.
    fn check_departure(&self, from: Region, left: &HomeMove, lost: &[Region]) -> Result<(), RegionBreach> {
        let fits = |arrival: &HomeMove| match arrival.kind {
            // Denials may be on record after the handover, but no admission.
            HomeMoveKind::Arrived { peer_seq } => {
                arrival.version == left.version && arrival.peer == from && peer_seq <= left.seq
            }
            // The departure went to a lost region first, and to its successor after the loss. The successor adopted the home
            // by the restored ledger, in which the move was over. `end_of` checks the moves between the two versions.
            HomeMoveKind::Adopted { .. } => arrival.version > left.version,
            HomeMoveKind::Left | HomeMoveKind::Forgotten => false,
        };
        let is_joined = self.arrivals.iter().any(|(region, arrival)| {
            (*region == left.peer && fits(arrival))
                || (lost.contains(&left.peer) && arrival.version > left.version)
        });
        if is_joined {
            return Ok(());
        }
        let (user, version) = (left.subscriber.1.clone(), left.version);
        Err(RegionBreach::Unjoined { user, version, from, to: left.peer })
    }
}

/// Ends every tenure of a lost region by the last event that the adoption read from the restored ledger.
fn cap(tenures: &mut [Tenure], lost: Region, read: u64) {
    tenures.iter_mut().filter(|tenure| tenure.region == lost).for_each(|tenure| tenure.cap(read));
}
