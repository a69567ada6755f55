//! Joins the audit logs of several regions, and proves that no subscriber's pool was admitted to by two regions at once.
//!
//! The home of a subscriber has a version, and each version belongs to one region. A region may admit from the number of
//! its last event at the arrival of the home up to the number that the region told its successor.

use std::collections::HashMap;

use futures_util::TryStreamExt as _;
use seatkeeper_core::{Region, TenantId, UserId};

use crate::row::Fields;
use crate::{Error, Ledger};

/// A subscriber: the tenant and the user.
pub type Subscriber = (TenantId, UserId);

/// A move of a home, as one of the two regions has it on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeMove {
    /// The subscriber.
    pub subscriber: Subscriber,
    /// The version of the home after the move.
    pub version: u64,
    /// The other region of the move.
    pub peer: Region,
    /// The number of the pool's last event in the recording region at the move.
    pub seq: u64,
    /// The number of the pool's last event in the region that the home left; `None` in that region's own record.
    pub peer_seq: Option<u64>,
    /// The recording region took the home over from the restored ledger of a lost region. The lost region may have moved
    /// the home after the backup, so its records may be missing.
    pub is_adopted: bool,
}

/// A violation found by joining the logs of several regions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegionBreach {
    /// Two regions took over the same version of a home.
    #[error("regions {first} and {second} both took over version {version} of the home of {user}")]
    TwoArrivals {
        /// The subscriber.
        user: UserId,
        /// The version.
        version: u64,
        /// A region.
        first: Region,
        /// Another region.
        second: Region,
    },
    /// The two records of a move contradict each other, or one is missing.
    #[error("the records of regions {from} and {to} of version {version} of the home of {user} do not join")]
    Unjoined {
        /// The subscriber.
        user: UserId,
        /// The version.
        version: u64,
        /// The region that the home left.
        from: Region,
        /// The target.
        to: Region,
    },
    /// A region admitted while it was not the home.
    #[error("region {region} admitted {user} by event {seq} while it was not the home")]
    AdmittedAway {
        /// The subscriber.
        user: UserId,
        /// The region.
        region: Region,
        /// The number of the admission.
        seq: u64,
    },
}

/// The counts of a join without a violation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegionProof {
    /// Regions.
    pub regions: u64,
    /// Moves of homes.
    pub moves: u64,
    /// Admissions to subscribers' pools, each in the home of its moment.
    pub admissions: u64,
}

/// The numbers of events within which a region may admit to a pool.
#[derive(Clone, Copy, Debug)]
struct Tenure {
    region: Region,
    after: u64,
    /// `None`: the region is still the home.
    through: Option<u64>,
}

/// The homes of all subscribers over time, joined from the records of several regions.
#[derive(Debug)]
pub struct HomeTrails {
    tenures: HashMap<Subscriber, Vec<Tenure>>,
    /// The only region so far that admitted a subscriber whose home never moved.
    unmoved: HashMap<Subscriber, Region>,
    proof: RegionProof,
}

impl HomeTrails {
    /// Joins the moves on record in each region.
    pub fn join(regions: &[(Region, Vec<HomeMove>)]) -> Result<Self, RegionBreach> {
        let mut arrivals: HashMap<&Subscriber, Vec<(Region, &HomeMove)>> = HashMap::new();
        for (region, moves) in regions {
            for arrival in moves.iter().filter(|moved| moved.peer_seq.is_some()) {
                arrivals.entry(&arrival.subscriber).or_default().push((*region, arrival));
            }
        }
        let mut tenures = HashMap::new();
        let mut moves = 0;
        for (subscriber, mut arrived) in arrivals {
            arrived.sort_unstable_by_key(|(_, arrival)| arrival.version);
            moves += arrived.len() as u64;
            tenures.insert(subscriber.clone(), tenures_of(subscriber, &arrived)?);
        }
        for (region, departures) in regions {
            for left in departures.iter().filter(|moved| moved.peer_seq.is_none()) {
                check_departure(*region, left, regions)?;
            }
        }
        let proof = RegionProof { regions: regions.len() as u64, moves, admissions: 0 };
        Ok(Self { tenures, unmoved: HashMap::new(), proof })
    }

    /// Checks an admission on record in a region.
    pub fn admission(
        &mut self,
        region: Region,
        subscriber: Subscriber,
        seq: u64,
    ) -> Result<(), RegionBreach> {
        self.proof.admissions += 1;
        let is_home = match self.tenures.get(&subscriber) {
            Some(tenures) => tenures.iter().any(|tenure| {
                tenure.region == region
                    && tenure.after < seq
                    && tenure.through.is_none_or(|through| seq <= through)
            }),
            None => *self.unmoved.entry(subscriber.clone()).or_insert(region) == region,
        };
        let user = subscriber.1;
        if is_home { Ok(()) } else { Err(RegionBreach::AdmittedAway { user, region, seq }) }
    }

    /// Returns the proof, after the last admission of the last region.
    pub fn finish(self) -> RegionProof {
        self.proof
    }
}

/// Returns the tenures of a subscriber's homes, from the arrivals in the order of their versions.
fn tenures_of((_, user): &Subscriber, arrived: &[(Region, &HomeMove)]) -> Result<Vec<Tenure>, RegionBreach> {
    let mut tenures: Vec<Tenure> = Vec::new();
    for (region, arrival) in arrived {
        let (user, version) = (user.clone(), arrival.version);
        let unjoined =
            RegionBreach::Unjoined { user: user.clone(), version, from: arrival.peer, to: *region };
        let last = match tenures.last_mut() {
            Some(last) => last,
            // A home begins with version 1, in the region that the first move left. An adopted home may lack records.
            None if version == 2 || arrival.is_adopted => {
                tenures.push(Tenure { region: arrival.peer, after: 0, through: None });
                tenures.last_mut().ok_or(unjoined.clone())?
            }
            None => return Err(unjoined),
        };
        let before = last.region;
        if before != arrival.peer && arrival.is_adopted {
            // The record of the move into the lost region is lost as well.
            tenures.push(Tenure { region: *region, after: arrival.seq, through: None });
            continue;
        }
        if before != arrival.peer {
            let is_same = arrived.iter().filter(|(_, other)| other.version == version).count() > 1;
            let (first, second) = (before, *region);
            return Err(if is_same {
                RegionBreach::TwoArrivals { user, version, first, second }
            } else {
                unjoined
            });
        }
        last.through = arrival.peer_seq;
        tenures.push(Tenure { region: *region, after: arrival.seq, through: None });
    }
    Ok(tenures)
}

/// Checks that the target of a departure has the arrival on record, and that both records fit. A departure to a lost region
/// arrives in the successor, or in a record that is lost: then the successor has adopted a later version.
fn check_departure(
    from: Region,
    left: &HomeMove,
    regions: &[(Region, Vec<HomeMove>)],
) -> Result<(), RegionBreach> {
    let fits = |arrival: &&HomeMove| {
        arrival.subscriber == left.subscriber
            && arrival.version == left.version
            && arrival.peer == from
            // Denials may be on record after the handover, but no admission.
            && arrival.peer_seq.is_some_and(|seq| seq <= left.seq)
    };
    let adopts = |adopted: &HomeMove| {
        adopted.is_adopted && adopted.subscriber == left.subscriber && adopted.version > left.version
    };
    let mut arrivals =
        regions.iter().flat_map(|(region, moves)| moves.iter().map(move |moved| (*region, moved)));
    let is_joined = arrivals.any(|(region, moved)| (region == left.peer && fits(&moved)) || adopts(moved));
    if is_joined {
        return Ok(());
    }
    let user = left.subscriber.1.clone();
    Err(RegionBreach::Unjoined { user, version: left.version, from, to: left.peer })
}

impl Ledger {
    /// Returns the moves of homes on record in this region.
    pub async fn home_moves(&self) -> Result<Vec<HomeMove>, Error> {
        let rows = self.readers().query(include_str!("../../sql/home_moves.sql")).fetch_all().await?;
        let moved = |row| {
            let fields = Fields(row);
            let user = UserId::new(fields.value::<&str>("user_id")?);
            Ok(HomeMove {
                subscriber: (TenantId::new(fields.value::<&str>("tenant_id")?), user),
                version: fields.whole("version")?,
                peer: Region::new(fields.number_maybe::<u8>("peer")?.unwrap_or_default()),
                seq: fields.whole("seq")?,
                peer_seq: fields.number_maybe("peer_seq")?,
                is_adopted: fields.value::<&str>("direction")? == "adopted",
            })
        };
        rows.iter().map(moved).collect()
    }

    /// Checks every admission to subscribers' pools in this ledger of `region`. The inner result is the first violation.
    pub async fn check_admissions(
        &self,
        region: Region,
        trails: &mut HomeTrails,
    ) -> Result<Result<(), RegionBreach>, Error> {
        let mut rows = self.readers().query(include_str!("../../sql/subscriber_admissions.sql")).fetch();
        while let Some(row) = rows.try_next().await? {
            let fields = Fields(&row);
            let user = UserId::new(fields.value::<&str>("pool_id")?);
            let subscriber = (TenantId::new(fields.value::<&str>("tenant_id")?), user);
            if let Err(breach) = trails.admission(region, subscriber, fields.whole("seq")?) {
                return Ok(Err(breach));
            }
        }
        Ok(Ok(()))
    }
}

#[cfg(test)]
mod tests;
