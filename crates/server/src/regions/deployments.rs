//! The deployments of the peers. The first deployment of each peer stays on record. A rival, a second deployment with the number
//! and the key of a peer as after a copied settings file, is refused: two deployments could be the home of a subscriber.

use std::collections::HashMap;

use parking_lot::{Mutex, RwLock};
use seatkeeper_core::Region;
use seatkeeper_ledger::homes::DeploymentId;
use seatkeeper_ledger::{Error as LedgerError, Ledger};

use super::Regions;
use crate::error::Error;

/// The deployments on record.
pub(super) struct Deployments {
    ledger: Ledger,
    known: RwLock<HashMap<Region, DeploymentId>>,
    /// The last refused rival of each peer, for the log.
    refused: Mutex<HashMap<Region, DeploymentId>>,
}

impl Deployments {
    pub(super) fn new(ledger: Ledger) -> Self {
        Self { ledger, known: RwLock::default(), refused: Mutex::default() }
    }

    /// Reads the record: an operator may have made this region forget a peer.
    pub(super) async fn refresh(&self) -> Result<(), LedgerError> {
        let read = self.ledger.peer_deployments().await?.into_iter().collect();
        *self.known.write() = read;
        Ok(())
    }

    /// Returns the deployment on record of a peer.
    pub(super) fn known(&self, peer: Region) -> Option<DeploymentId> {
        self.known.read().get(&peer).copied()
    }

    /// Checks the deployment in a peer's token. The first deployment goes on record. Returns `Err(RegionNumberTaken)` for a rival.
    /// An operator's repair counts after a second.
    async fn check(&self, peer: Region, shown: DeploymentId) -> Result<(), Error> {
        let known = match self.known(peer) {
            Some(known) => known,
            None => {
                let noted = self.ledger.note_peer_deployment(peer, shown).await.map_err(Error::Ledger)?;
                self.known.write().insert(peer, noted);
                noted
            }
        };
        if known == shown {
            return Ok(());
        }
        if self.refused.lock().insert(peer, shown) != Some(shown) {
            tracing::error!(
                region = peer.number(),
                deployment = %shown,
                on_record = %known,
                "a second deployment uses the number and a key of a peer, and is refused: give the second deployment a number \
                 and a key of its own; if the deployment on record is wrong or gone for good, see `seatkeeper repair region`"
            );
        }
        Err(Error::RegionNumberTaken { peer })
    }
}

impl Regions {
    /// Checks the deployment in a peer's token. Returns `Err(RegionNumberTaken)` for a rival.
    pub(crate) async fn check_deployment(&self, peer: Region, shown: DeploymentId) -> Result<(), Error> {
        self.deployments.check(peer, shown).await
    }

    /// Reads the deployments of the peers from the record.
    pub(crate) async fn refresh_deployments(&self) -> Result<(), LedgerError> {
        self.deployments.refresh().await
    }
}
