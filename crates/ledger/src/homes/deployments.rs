//! The deployments behind the numbers of regions. A number belongs to a single deployment. A rival, a second deployment with
//! the number, could be the home of a subscriber at the same time.

use std::fmt::{self, Display, Formatter};

use seatkeeper_core::Region;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{region_from, stored};
use crate::database::Row;
use crate::row::Fields;
use crate::{Error, Ledger};

/// The identity of a deployment with regions: random, and kept in the ledger. A restored backup and a promoted standby keep
/// the identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeploymentId(Uuid);

/// The region of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnRegion {
    /// The region.
    pub region: Region,
    /// The deployment.
    pub deployment: DeploymentId,
    /// The answers of the peers about the deployment.
    pub answers: RecordedAnswers,
}

/// The answers of the peers about the deployment of a ledger, as far as on record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordedAnswers {
    /// The region was used without peers, or a peer has accepted the deployment.
    pub is_confirmed: bool,
    /// A peer that knows a rival.
    pub refused_by: Option<Region>,
    /// A peer knows a rival, and a further peer accepts the deployment.
    pub is_disputed: bool,
}

impl DeploymentId {
    /// Returns a new identity.
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }
}

impl Display for DeploymentId {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl OwnRegion {
    fn read(row: &Row) -> Result<Self, Error> {
        let fields = Fields(row);
        Ok(Self {
            region: region_from(fields.value("region")?)?,
            deployment: DeploymentId(fields.value("deployment_id")?),
            answers: RecordedAnswers {
                is_confirmed: fields.whole("is_confirmed")? > 0,
                refused_by: fields.number_maybe::<u8>("refused_by")?.map(Region::new),
                is_disputed: fields.whole("is_disputed")? > 0,
            },
        })
    }
}

impl Ledger {
    /// Returns the region of the ledger, and fixes `region` with a new deployment if no region is on record. A region
    /// without peers needs no confirmation.
    pub async fn fix_own_region(&self, region: Region, has_peers: bool) -> Result<OwnRegion, Error> {
        let mut tx = self.write().await?;
        let fix = tx.query(include_str!("../../sql/fix_own_region.sql")).bind(stored(region));
        fix.bind(DeploymentId::random().0).bind(i64::from(!has_peers)).execute().await?;
        let fixed = tx.query(include_str!("../../sql/own_region.sql")).fetch_one().await?;
        tx.commit().await?;
        OwnRegion::read(&fixed)
    }

    /// Returns the region of this ledger; `None` if no server with regions has used the ledger.
    pub async fn own_region(&self) -> Result<Option<OwnRegion>, Error> {
        let region = self.readers().query(include_str!("../../sql/own_region.sql"));
        region.fetch_optional().await?.as_ref().map(OwnRegion::read).transpose()
    }

    /// Records the answers of the peers about the deployment. A confirmation on record stays.
    pub async fn note_answers(&self, answers: RecordedAnswers) -> Result<(), Error> {
        let RecordedAnswers { is_confirmed, refused_by, is_disputed } = answers;
        let mut tx = self.write().await?;
        let note = tx.query(include_str!("../../sql/note_answers.sql"));
        let note = note.bind(i64::from(is_confirmed)).bind(refused_by.map(stored));
        note.bind(i64::from(is_disputed)).execute().await?;
        tx.commit().await
    }

    /// Returns the deployment on record of each peer region.
    pub async fn peer_deployments(&self) -> Result<Vec<(Region, DeploymentId)>, Error> {
        let rows = self.readers().query(include_str!("../../sql/peer_deployments.sql")).fetch_all().await?;
        let deployment = |row: &Row| {
            let fields = Fields(row);
            Ok((region_from(fields.value("region")?)?, DeploymentId(fields.value("deployment_id")?)))
        };
        rows.iter().map(deployment).collect()
    }

    /// Records the deployment of a peer region, and returns the deployment on record: the first stays.
    pub async fn note_peer_deployment(
        &self,
        region: Region,
        deployment: DeploymentId,
    ) -> Result<DeploymentId, Error> {
        let mut tx = self.write().await?;
        let note = tx.query(include_str!("../../sql/note_peer_deployment.sql"));
        note.bind(stored(region)).bind(deployment.0).execute().await?;
        let noted = tx.query(include_str!("../../sql/peer_deployment.sql"));
        let noted = noted.bind(stored(region)).scalar().await?;
        tx.commit().await?;
        Ok(DeploymentId(noted))
    }

    /// Forgets the deployment of a peer region, so that the next deployment with the number and a key of the peer goes on record.
    /// Returns `false` if no deployment was on record.
    pub async fn forget_peer_deployment(&self, region: Region) -> Result<bool, Error> {
        let mut tx = self.write().await?;
        let forget = tx.query(include_str!("../../sql/forget_peer_deployment.sql"));
        let forgotten = forget.bind(stored(region)).execute().await? > 0;
        tx.commit().await?;
        Ok(forgotten)
    }
}
