//! Figures for operators: seats in use and queue depths.

use std::collections::BTreeMap;

use seatkeeper_core::PoolKind;
use uuid::Uuid;

use crate::chunks::{ChunkedStatement, sized_texts};
use crate::database::{Row, Tx};
use crate::licenses::LicenseId;
use crate::row::Fields;
use crate::{Error, Ledger};

/// Licenses in one lookup statement.
const ROWS_MAX: usize = 256;

static SEATS: ChunkedStatement =
    ChunkedStatement::new(|| sized_texts(include_str!("../sql/license_seats.sql"), 1, ROWS_MAX));

/// The used and total seats of a license.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LicenseSeats {
    /// The license.
    pub license: LicenseId,
    /// Live sessions on record.
    pub used: u64,
    /// The license's seats.
    pub total: u32,
}

impl Ledger {
    /// Returns the number of live sessions on record for each kind of pool. An expired session counts until
    /// its end is on record.
    pub async fn live_by_kind(&self) -> Result<BTreeMap<PoolKind, u64>, Error> {
        let rows = self.readers().query(include_str!("../sql/live_by_kind.sql")).fetch_all().await?;
        let count = |row| {
            let fields = Fields(row);
            Ok((fields.named("pool_kind")?, fields.whole("live")?))
        };
        rows.iter().map(count).collect()
    }

    /// Returns the used and total seats of at most `max` licenses, read in one snapshot: first the licenses
    /// with the most live sessions, then the newest active licenses.
    pub async fn license_seats(&self, max: u32) -> Result<Vec<LicenseSeats>, Error> {
        let mut tx = self.readers().begin_snapshot().await?;
        let used = in_use(&mut tx, max).await?;
        let mut totals = seats_of(&mut tx, &used).await?;
        let newest = tx.query(include_str!("../sql/newest_license_seats.sql")).bind(i64::from(max));
        for row in newest.fetch_all().await? {
            if totals.len() < max as usize {
                totals.extend([seats_in(&row)?]);
            }
        }
        let of = |(license, total)| LicenseSeats {
            license: LicenseId(license),
            used: used.get(&license).copied().unwrap_or_default(),
            total,
        };
        Ok(totals.into_iter().map(of).collect())
    }

    /// Returns the number of usage batches waiting for delivery.
    pub async fn usage_outbox_depth(&self) -> Result<u64, Error> {
        let depth: i64 = self.readers().query(include_str!("../sql/outbox_depth.sql")).scalar().await?;
        Ok(depth.unsigned_abs())
    }

    /// Returns the number of usage batches that the sink has refused for good.
    pub async fn dead_usage_batches(&self) -> Result<u64, Error> {
        let dead: i64 = self.readers().query(include_str!("../sql/dead_batches.sql")).scalar().await?;
        Ok(dead.unsigned_abs())
    }
}

async fn in_use(tx: &mut Tx, max: u32) -> Result<BTreeMap<Uuid, u64>, Error> {
    let query = tx.query(include_str!("../sql/licenses_in_use.sql")).bind(i64::from(max));
    let count = |row: &Row| {
        let fields = Fields(row);
        Ok((fields.named("pool_id")?, fields.whole("live")?))
    };
    query.fetch_all().await?.iter().map(count).collect()
}

async fn seats_of(tx: &mut Tx, licenses: &BTreeMap<Uuid, u64>) -> Result<BTreeMap<Uuid, u32>, Error> {
    let ids: Vec<_> = licenses.keys().copied().collect();
    let mut seats = BTreeMap::new();
    for (statement, chunk) in SEATS.cut(tx.dialect(), &ids) {
        let query = chunk.iter().fold(tx.query(statement), |query, id| query.bind(*id));
        for row in query.fetch_all().await? {
            seats.extend([seats_in(&row)?]);
        }
    }
    Ok(seats)
}

fn seats_in(row: &Row) -> Result<(Uuid, u32), Error> {
    let fields = Fields(row);
    Ok((fields.value("id")?, fields.small("max_seats")?))
}
