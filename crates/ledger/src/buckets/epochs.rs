//! The epoch and the mode of each bucket.
//!
//! An epoch never decreases. A batch of events commits only if every event has its bucket's epoch.

use std::collections::{BTreeMap, BTreeSet};

use seatkeeper_core::{BUCKETS, Bucket, Event, named_enum};

use crate::chunks::{ChunkedStatement, sized_texts};
use crate::database::{Row, Tx};
use crate::row::{Fields, corrupt};
use crate::{Error, Ledger};

/// Rows in one statement, enough for all buckets.
pub(super) const ROWS_MAX: usize = BUCKETS as usize;

static HOLD: ChunkedStatement =
    ChunkedStatement::new(|| sized_texts(include_str!("../../sql/hold_buckets.sql"), 1, ROWS_MAX));

named_enum! {
    /// The mode of a bucket: the registry serving the bucket, the same on all nodes.
    #[derive(Hash)]
    pub enum BucketMode else "not a mode of a bucket" {
        /// The configured registry serves.
        Registry = "registry",
        /// The registry is unreachable, and PostgreSQL serves in its place.
        Ledger = "ledger",
        /// The registry is unreachable, and each node admits alone where the pool's policy allows.
        Allow = "allow",
        /// The registry is unreachable, and every claim is denied.
        Deny = "deny",
    }
}

/// The beginning of the identity of a registry whose process uses the ledger alone.
pub(crate) const ALONE: &str = "alone/";

/// A bucket on record in the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketRow {
    /// The bucket.
    pub bucket: Bucket,
    /// The bucket's epoch: 0 at first, and never decreasing.
    pub epoch: u64,
    /// The bucket's mode.
    pub mode: BucketMode,
    /// The registry's identity when the bucket was filled; `None` for a registry without an identity, and
    /// before the first fill.
    pub identity: Option<String>,
    /// The epoch was raised in this ledger. Otherwise the ledger is a copy: a promoted standby or a restored
    /// backup. A copy may lack the latest records, and must raise the epoch.
    pub was_raised_here: bool,
}

/// A bucket whose epoch differs from the epoch of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaleBucket {
    /// The bucket.
    pub bucket: Bucket,
    /// The bucket's epoch in the ledger.
    pub epoch: u64,
}

impl Ledger {
    /// Returns all buckets in order, read in one statement.
    pub async fn buckets(&self) -> Result<Vec<BucketRow>, Error> {
        let rows = self.readers().query(include_str!("../../sql/buckets.sql")).fetch_all().await?;
        rows.iter().map(BucketRow::read).collect()
    }
}

/// Reads all buckets in order within a transaction.
pub(super) async fn read_buckets(tx: &mut Tx) -> Result<Vec<BucketRow>, Error> {
    let rows = tx.query(include_str!("../../sql/buckets.sql")).fetch_all().await?;
    rows.iter().map(BucketRow::read).collect()
}

/// Locks buckets until the transaction ends, and returns their epochs. Holders of one bucket run one after
/// another, and the epochs cannot change meanwhile.
pub(crate) async fn hold(
    tx: &mut Tx,
    buckets: impl Iterator<Item = Bucket>,
) -> Result<BTreeMap<Bucket, u64>, Error> {
    let buckets: Vec<_> = buckets.collect::<BTreeSet<_>>().into_iter().collect();
    let mut epochs = BTreeMap::new();
    for (statement, chunk) in HOLD.cut_filled(tx.dialect(), &buckets) {
        let query = chunk.fold(tx.query(statement), |query, bucket| query.bind(stored(*bucket)));
        for row in &query.fetch_all().await? {
            let fields = Fields(row);
            epochs.insert(bucket_of(fields.value("id")?)?, fields.whole("epoch")?);
        }
    }
    Ok(epochs)
}

/// Locks the buckets of events until the transaction ends. An event whose epoch is not its bucket's gives
/// [`Error::StaleEpoch`].
pub(crate) async fn hold_current(tx: &mut Tx, events: &[Event]) -> Result<(), Error> {
    let epochs = hold(tx, events.iter().map(|event| event.pool.bucket())).await?;
    let stale = |event: &Event| {
        let bucket = event.pool.bucket();
        let epoch = epochs.get(&bucket).copied().unwrap_or_default();
        (event.epoch != epoch).then_some((bucket, epoch))
    };
    let stale: BTreeMap<_, _> = events.iter().filter_map(stale).collect();
    if stale.is_empty() {
        return Ok(());
    }
    let buckets = stale.into_iter().map(|(bucket, epoch)| StaleBucket { bucket, epoch }).collect();
    Err(Error::StaleEpoch { buckets })
}

impl BucketRow {
    /// Returns whether a process that uses the ledger alone has filled the bucket last.
    pub fn is_of_sole_user(&self) -> bool {
        self.identity.as_deref().is_some_and(|identity| identity.starts_with(ALONE))
    }

    fn read(row: &Row) -> Result<Self, Error> {
        let fields = Fields(row);
        Ok(Self {
            bucket: bucket_of(fields.value("id")?)?,
            epoch: fields.whole("epoch")?,
            mode: fields.named("mode")?,
            identity: fields.value("registry_identity")?,
            was_raised_here: fields.value("was_raised_here")?,
        })
    }
}

/// Returns a bucket's number for storage.
pub(crate) fn stored(bucket: Bucket) -> i64 {
    i64::from(bucket.number())
}

/// Returns the bucket of a stored number.
pub(super) fn bucket_of(number: i64) -> Result<Bucket, Error> {
    let bucket = u16::try_from(number).ok().and_then(Bucket::new);
    bucket.ok_or_else(|| corrupt("bucket", "a number that no bucket has"))
}
