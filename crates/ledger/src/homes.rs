//! The anchor regions of tenants, and the home regions of subscribers. An anchor never changes. A home changes by a move
//! (`moves.rs`) or by the adoption of a lost region (`adoptions.rs`), and each raises the home's version.

mod adoptions;
mod claims;
mod cursor;
mod deployments;
mod forgotten;
mod moved;
mod moves;

use seatkeeper_core::{Region, RegistryTime, TenantId, UserId, named_enum};

use crate::database::{Row, Tx};
use crate::row::{Fields, corrupt, stored_whole};
use crate::{Error, Ledger, Write, tenants, times};
pub use adoptions::{Adoption, KnownHome};
pub use cursor::HomesCursor;
pub use deployments::{DeploymentId, OwnRegion, RecordedAnswers};
pub use forgotten::HomesHere;
pub use moves::{Arrival, ArrivalKind, Departure};

/// The home of a subscriber, as far as one region knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    /// The home region, or the target of a move.
    pub region: Region,
    /// The number of moves plus 1. Of two homes of a subscriber, the greater version is the newer home.
    pub version: u64,
    /// The state of the home in the region that knows the home.
    pub state: HomeState,
    /// The time before which an adopted home admits nobody.
    pub admits_from: Option<RegistryTime>,
}

named_enum! {
    /// The state of a home in the ledger of a region.
    pub enum HomeState else "not a state of a home" {
        /// The home is settled in its region.
        Here = "here",
        /// The home is on its way out of this region: no region may admit.
        Moving = "moving",
        /// The home has left this region, and its new region has taken over.
        Moved = "moved",
    }
}

/// The number of homes in a region, as far as the ledger knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionHomes {
    /// The region.
    pub region: Region,
    /// The homes in the region, homes on their way there included.
    pub homes: u64,
    /// The homes on their way from this region to the region.
    pub moving: u64,
}

impl Home {
    /// The version of a home that has never moved.
    pub const FIRST_VERSION: u64 = 1;

    /// Returns a home that has never moved.
    pub const fn first(region: Region) -> Self {
        Self { region, version: Self::FIRST_VERSION, state: HomeState::Here, admits_from: None }
    }

    /// Returns whether the home has never moved.
    pub const fn is_first(&self) -> bool {
        self.version == Self::FIRST_VERSION
    }

    /// Returns whether `region` may admit, if `region` knows this home.
    pub fn admits(&self, region: Region) -> bool {
        self.state == HomeState::Here && self.region == region
    }

    fn read(row: &Row) -> Result<Self, Error> {
        let fields = Fields(row);
        let (region, version) = (fields.value("region")?, fields.whole("version")?);
        let (region, state) = (region_from(region)?, fields.named("state")?);
        Ok(Self { region, version, state, admits_from: fields.time_maybe("admits_from")? })
    }
}

impl Ledger {
    /// Returns the anchor region of a tenant, and fixes `anchor` if the tenant has no anchor on record.
    pub async fn fix_anchor(&self, tenant: &TenantId, anchor: Region) -> Result<Region, Error> {
        let mut tx = self.write().await?;
        let now = times::from_stored(tx.now().await?);
        tenants::note(&mut tx, tenant, now).await?;
        let fixed = tx.query(include_str!("../sql/fix_anchor.sql"));
        let fixed = fixed.bind(tenant.as_str()).bind(stored(anchor)).scalar().await?;
        tx.commit().await?;
        region_from(fixed)
    }

    /// Returns the home of a subscriber, as far as this ledger knows.
    pub async fn home(&self, tenant: &TenantId, user: &UserId) -> Result<Option<Home>, Error> {
        let home = self.readers().query(include_str!("../sql/home.sql"));
        let row = home.bind(tenant.as_str()).bind(user.as_str()).fetch_optional().await?;
        row.as_ref().map(Home::read).transpose()
    }

    /// Returns the number of a tenant's homes in each region, as far as this ledger knows.
    pub async fn homes_by_region(&self, tenant: &TenantId) -> Result<Vec<RegionHomes>, Error> {
        let counts = self.readers().query(include_str!("../sql/homes_by_region.sql"));
        let rows = counts.bind(tenant.as_str()).fetch_all().await?;
        let counted = |row| {
            let fields = Fields(row);
            let (region, homes) = (region_from(fields.value("region")?)?, fields.whole("homes")?);
            Ok(RegionHomes { region, homes, moving: fields.whole("moving")? })
        };
        rows.iter().map(counted).collect()
    }

    /// Returns the home of a subscriber, and assigns `first` if the subscriber has no home. A subscriber with a
    /// history or a subscription in this ledger gets `own`, the region of this ledger. Concurrent calls return the same
    /// home.
    pub async fn assign_home(
        &self,
        tenant: &TenantId,
        user: &UserId,
        first: Region,
        own: Region,
    ) -> Result<Home, Error> {
        let mut tx = self.write().await?;
        let now = tx.now().await?;
        let assignment = tx.query(include_str!("../sql/assign_home.sql"));
        let assignment = assignment.bind(tenant.as_str()).bind(user.as_str());
        assignment.bind(stored(first)).bind(stored(own)).bind(now).execute().await?;
        let home = read(&mut tx, tenant, user).await?;
        tx.commit().await?;
        home.ok_or_else(|| corrupt("region", "no home after the assignment"))
    }

    /// Records a newer home in another region than `own`, the region of this ledger, and returns the home on record. A
    /// home in `own` stays unchanged.
    pub async fn learn_home(
        &self,
        tenant: &TenantId,
        user: &UserId,
        (region, version): (Region, u64),
        own: Region,
    ) -> Result<Option<Home>, Error> {
        let mut tx = self.write().await?;
        let now = tx.now().await?;
        let learned = tx.query(include_str!("../sql/learn_home.sql"));
        let learned = learned.bind(tenant.as_str()).bind(user.as_str());
        let learned = learned.bind(stored(region)).bind(stored_whole(version)).bind(now);
        learned.bind(stored(own)).execute().await?;
        let home = read(&mut tx, tenant, user).await?;
        tx.commit().await?;
        Ok(home)
    }
}

/// Returns `Err(HomeElsewhere)` for a subscriber whose home on record is not the region that `write` requires, if `write`
/// requires any. The caller must [`hold`](tenants::hold) the tenant: a move begins before the check or after the transaction.
pub(crate) async fn check_is_at_home(
    tx: &mut Tx,
    (tenant, user): (&TenantId, &UserId),
    write: &Write<'_>,
) -> Result<(), Error> {
    let Some(own) = write.home else { return Ok(()) };
    match read(tx, tenant, user).await?.filter(|home| !home.admits(own)) {
        Some(home) => Err(Error::HomeElsewhere { user: user.clone(), home }),
        None => Ok(()),
    }
}

/// Returns whether [`Ledger::take_home`] would place a home of `version` here: as in `place_home.sql`, the home on
/// record is older, and not on its way out of this region, unless to the region `lost`.
pub(crate) async fn may_arrive(
    tx: &mut Tx,
    (tenant, user): (&TenantId, &UserId),
    version: u64,
    lost: Option<Region>,
) -> Result<bool, Error> {
    let may_replace =
        |home: Home| home.version < version && (home.state != HomeState::Moving || Some(home.region) == lost);
    Ok(read(tx, tenant, user).await?.is_none_or(may_replace))
}

/// Reads the home of a subscriber in a transaction.
async fn read(tx: &mut Tx, tenant: &TenantId, user: &UserId) -> Result<Option<Home>, Error> {
    let home = tx.query(include_str!("../sql/home.sql"));
    let row = home.bind(tenant.as_str()).bind(user.as_str()).fetch_optional().await?;
    row.as_ref().map(Home::read).transpose()
}

fn region_from(number: i64) -> Result<Region, Error> {
    u8::try_from(number).map(Region::new).map_err(|source| corrupt("region", source))
}

fn stored(region: Region) -> i64 {
    i64::from(region.number())
}
