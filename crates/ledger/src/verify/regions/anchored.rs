//! The pools of licenses and capacities. Their home is the anchor of the tenant, which never changes, or the successor of a lost
//! anchor.

use std::collections::HashMap;

use seatkeeper_core::{PoolId, Region};

use super::RegionBreach;

/// The admissions to pools so far.
#[derive(Debug)]
pub(super) struct AnchoredPools {
    /// Each lost region with its successor.
    adopted: Vec<(Region, Region)>,
    /// The first home of each pool among the regions so far: all others are successors.
    first: HashMap<PoolId, Region>,
}

impl AnchoredPools {
    pub(super) fn new(adopted: &[(Region, Region)]) -> Self {
        Self { adopted: adopted.to_vec(), first: HashMap::new() }
    }

    /// Checks an admission to `pool` in `region`.
    pub(super) fn admission(&mut self, region: Region, pool: PoolId) -> Result<(), RegionBreach> {
        let Some(first) = self.first.get(&pool).copied() else {
            self.first.insert(pool, region);
            return Ok(());
        };
        if region == first || self.follows(region, first) {
            return Ok(());
        }
        if !self.follows(first, region) {
            return Err(RegionBreach::TwoAnchors { pool, first, second: region });
        }
        self.first.insert(pool, region);
        Ok(())
    }

    /// Returns whether `later` is the successor of the lost region `earlier`, or a successor of the successor.
    fn follows(&self, later: Region, earlier: Region) -> bool {
        let mut at = earlier;
        // Each lost region is looked up once at most, so a ring on record ends as well.
        for _ in 0..self.adopted.len() {
            match self.adopted.iter().find(|(lost, _)| *lost == at) {
                Some((_, successor)) => at = *successor,
                None => return false,
            }
            if at == later {
                return true;
            }
        }
        false
    }
}
