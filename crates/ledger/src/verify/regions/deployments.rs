//! The deployments behind the numbers: every ledger that is given must be of the deployment that the other regions know.

use seatkeeper_core::Region;

use super::RegionBreach;
use crate::homes::{DeploymentId, OwnRegion};

/// The deployment of a ledger, and the deployments that the ledger knows by the numbers of the peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownDeployments {
    /// The region of the ledger.
    pub own: OwnRegion,
    /// The deployment of each peer that has shown one.
    pub peers: Vec<(Region, DeploymentId)>,
}

/// Checks that each region knows the deployments of the other ledgers.
pub fn check_deployments(ledgers: &[KnownDeployments]) -> Result<(), RegionBreach> {
    for KnownDeployments { own, peers } in ledgers {
        for (peer, deployment) in peers {
            let given = ledgers.iter().map(|other| other.own).find(|other| other.region == *peer);
            if given.is_some_and(|given| given.deployment != *deployment) {
                return Err(RegionBreach::OtherDeployment { region: own.region, peer: *peer });
            }
        }
    }
    Ok(())
}
