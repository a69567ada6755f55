//! The deployments behind the numbers: the regions must know the deployments whose ledgers are given.

use seatkeeper_core::Region;

use super::RegionBreach;
use crate::homes::{DeploymentId, OwnRegion};

/// The deployment of a ledger, and the peers' deployments on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownDeployments {
    /// The region of the ledger.
    pub own: OwnRegion,
    /// The deployment of each known peer.
    pub peers: Vec<(Region, DeploymentId)>,
}

/// Checks that no region knows a rival of a ledger's deployment.
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
