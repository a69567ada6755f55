//! Joins the audit logs of several regions, and proves that no two regions admitted to one pool at once.
//!
//! The home of a subscriber has a version, and each version belongs to one region. A region may admit from the number of
//! its last event at the arrival of the home up to the number that the region told its successor. The home of a license and
//! of a capacity is its tenant's anchor, until the anchor is lost and adopted.

use std::collections::HashMap;

use futures_util::TryStreamExt as _;
use seatkeeper_core::{PoolId, PoolKind, Region, TenantId, UserId, named_enum};

use crate::row::{Fields, corrupt};
use crate::{Error, Ledger};

mod anchored;
mod deployments;
mod trail;

use anchored::AnchoredPools;
pub use deployments::{KnownDeployments, check_deployments};
use trail::{Tenure, Trail};

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
    /// The role of the recording region in the move.
    pub kind: HomeMoveKind,
}

/// The role of the recording region in a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HomeMoveKind {
    /// The home left the recording region.
    Left,
    /// The home had left the recording region by a move that the region's restored ledger did not know. The move began
    /// again, and its end is on record as [`Left`](Self::Left).
    Forgotten,
    /// The home arrived in the recording region.
    Arrived {
        /// The number of the pool's last event in the region that the home left.
        peer_seq: u64,
    },
    /// The recording region took the home over from the restored ledger of a lost region. The lost region may have moved
    /// the home after the backup, so its records may be missing.
    Adopted {
        /// The number of the pool's last event in the restored ledger at the adoption; `None` if no restored ledger was read
        /// for the home.
        peer_seq: Option<u64>,
    },
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
    /// The restored ledger of a lost region has an admission that is later than the region's adoption.
    #[error("region {region} admitted to {pool:?} by event {seq} after its adoption by another region")]
    AdmittedAfterLoss {
        /// The pool.
        pool: PoolId,
        /// The lost region.
        region: Region,
        /// The number of the admission.
        seq: u64,
    },
    /// Two regions admitted to the pool of a license or a capacity, and neither has adopted the other.
    #[error("regions {first} and {second} both admitted to {pool:?}, and neither has adopted the other")]
    TwoAnchors {
        /// The pool.
        pool: PoolId,
        /// A region.
        first: Region,
        /// Another region.
        second: Region,
    },
    /// A region knows a rival of a deployment whose ledger was given.
    #[error(
        "region {region} knows another deployment as region {peer} than the deployment of the given ledger"
    )]
    OtherDeployment {
        /// The region.
        region: Region,
        /// The peer.
        peer: Region,
    },
    /// A node admitted in place of an unreachable home, by a limit that no region has granted.
    #[error(
        "a node admitted {user} in place of the home by limit {limit} of version {version}, which no region has granted"
    )]
    LimitNotTold {
        /// The subscriber.
        user: UserId,
        /// The version of the terms.
        version: u64,
        /// The limit on record.
        limit: u32,
    },
}

/// The counts of a join without a violation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegionProof {
    /// Regions.
    pub regions: u64,
    /// Moves of homes.
    pub moves: u64,
    /// Admissions to the pools of subscribers, licenses and capacities, each in the home of its moment.
    pub admissions: u64,
}

/// The homes of all pools over time, joined from the records of several regions.
#[derive(Debug)]
pub struct HomeTrails {
    tenures: HashMap<Subscriber, Vec<Tenure>>,
    /// The only region so far that admitted a subscriber whose home never moved.
    unmoved: HashMap<Subscriber, Region>,
    anchored: AnchoredPools,
    proof: RegionProof,
}

named_enum! {
    /// The stored name of a [`HomeMoveKind`].
    enum MoveDirection else "not a direction of a move" {
        /// See [`HomeMoveKind::Left`].
        Left = "left",
        /// See [`HomeMoveKind::Forgotten`].
        Forgotten = "forgotten",
        /// See [`HomeMoveKind::Arrived`].
        Arrived = "arrived",
        /// See [`HomeMoveKind::Adopted`].
        Adopted = "adopted",
    }
}

impl HomeTrails {
    /// Joins the moves on record in each region. `adopted` has each lost region with its successor: records may be missing in
    /// lost regions alone, whose ledgers are restored from backups.
    pub fn join(
        regions: &[(Region, Vec<HomeMove>)],
        adopted: &[(Region, Region)],
    ) -> Result<Self, RegionBreach> {
        let lost: Vec<Region> = adopted.iter().map(|(lost, _)| *lost).collect();
        let mut trails: HashMap<&Subscriber, Trail<'_>> = HashMap::new();
        for (region, moved) in regions.iter().flat_map(|(region, moves)| moves.iter().map(|m| (*region, m))) {
            trails.entry(&moved.subscriber).or_default().add(region, moved);
        }
        let mut tenures = HashMap::new();
        let mut moves = 0;
        for (subscriber, mut trail) in trails {
            moves += trail.sort();
            tenures.insert(subscriber.clone(), trail.tenures(&subscriber.1, &lost)?);
        }
        let proof = RegionProof { regions: regions.len() as u64, moves, admissions: 0 };
        Ok(Self { tenures, unmoved: HashMap::new(), anchored: AnchoredPools::new(adopted), proof })
    }

    /// Checks an admission on record in a region: the event `seq` of `pool`.
    pub fn admission(&mut self, region: Region, pool: PoolId, seq: u64) -> Result<(), RegionBreach> {
        self.proof.admissions += 1;
        if pool.kind != PoolKind::Subscriber {
            return self.anchored.admission(region, pool);
        }
        let subscriber = (pool.tenant, UserId::new(&*pool.name));
        let is_home = match self.tenures.get(&subscriber) {
            Some(tenures) => tenures.iter().any(|tenure| tenure.covers(region, seq)),
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
                kind: match (fields.named("direction")?, fields.number_maybe("peer_seq")?) {
                    (MoveDirection::Left, _) => HomeMoveKind::Left,
                    (MoveDirection::Forgotten, _) => HomeMoveKind::Forgotten,
                    (MoveDirection::Arrived, Some(peer_seq)) => HomeMoveKind::Arrived { peer_seq },
                    (MoveDirection::Arrived, None) => return Err(corrupt("peer_seq", "none of an arrival")),
                    (MoveDirection::Adopted, peer_seq) => HomeMoveKind::Adopted { peer_seq },
                },
            })
        };
        rows.iter().map(moved).collect()
    }

    /// Checks every admission to the pools of subscribers, licenses and capacities in this ledger of `region`. The inner result is the first violation. The
    /// ledger of a lost region has no admission after its adoption.
    pub async fn check_admissions(
        &self,
        region: Region,
        trails: &mut HomeTrails,
    ) -> Result<Result<(), RegionBreach>, Error> {
        let adoptions = self.adoptions().await?;
        let own_loss = adoptions.iter().find(|adoption| adoption.lost == region);
        let audit_head = own_loss.map_or(u64::MAX, |adoption| adoption.audit_head);
        let mut rows = self.readers().query(include_str!("../../sql/home_admissions.sql")).fetch();
        while let Some(row) = rows.try_next().await? {
            let fields = Fields(&row);
            let (pool, seq) = (fields.pool()?, fields.whole("seq")?);
            if fields.whole("id")? > audit_head {
                return Ok(Err(RegionBreach::AdmittedAfterLoss { pool, region, seq }));
            }
            if let Err(breach) = trails.admission(region, pool, seq) {
                return Ok(Err(breach));
            }
        }
        Ok(Ok(()))
    }
}

#[cfg(test)]
mod tests;
