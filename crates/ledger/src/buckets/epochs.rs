//! The epoch and the mode of each bucket.
//!
//! An epoch never decreases. A batch of events commits only if every event has its bucket's epoch.

use std::collections::{BTreeMap, BTreeSet};

use seatkeeper_core::{BUCKETS, Bucket, Event, named_enum};
use uuid::Uuid;

use crate::chunks::{ChunkedStatement, sized_texts};
use crate::database::{Row, Tx};
use crate::nodes::refuse_overlooked_raise;
use crate::row::{Fields, corrupt, stored_whole};
use crate::{Error, Ledger};

/// Rows in one statement, enough for all buckets.
const ROWS_MAX: usize = BUCKETS as usize;

static HOLD: ChunkedStatement =
    ChunkedStatement::new(|| sized_texts(include_str!("../../sql/hold_buckets.sql"), 1, ROWS_MAX));
static SEIZE: ChunkedStatement =
    ChunkedStatement::new(|| sized_texts(include_str!("../../sql/seize_buckets.sql"), 1, ROWS_MAX));
static RAISE: ChunkedStatement =
    ChunkedStatement::new(|| sized_texts(include_str!("../../sql/raise_buckets.sql"), 5, ROWS_MAX));

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

/// A bucket due for a new epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EpochRaise {
    /// The bucket.
    pub bucket: Bucket,
    /// The epoch seen by the caller.
    pub seen: u64,
    /// The new epoch, greater than `seen`.
    pub next: u64,
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

    /// Raises each bucket still at epoch `seen` to epoch `next`, with mode `mode` and registry `identity` (a
    /// compare-and-swap). Returns the raised buckets in order. The call waits for batches in the course of
    /// being applied; later batches are refused unless their events have the new epoch.
    ///
    /// `Err(RaiseOverlooked)` while a remembered node may extend its lease without the word of node `raiser`.
    pub async fn raise(
        &self,
        raiser: Uuid,
        raises: &[EpochRaise],
        mode: BucketMode,
        identity: Option<&str>,
    ) -> Result<Vec<Bucket>, Error> {
        let raises: Vec<_> = raises.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
        let mut tx = self.write().await?;
        for (statement, chunk) in SEIZE.cut(tx.dialect(), &raises) {
            let query = tx.query(statement);
            chunk.iter().fold(query, |query, raise| query.bind(stored(raise.bucket))).execute().await?;
        }
        refuse_overlooked_raise(&mut tx, raiser).await?;
        let now = tx.now().await?;
        tx.query(include_str!("../../sql/note_copy.sql")).bind(now).execute().await?;
        let mut raised = Vec::new();
        for (statement, chunk) in RAISE.cut(tx.dialect(), &raises) {
            let query =
                chunk.iter().fold(tx.query(statement), |query, &EpochRaise { bucket, seen, next }| {
                    let query = query.bind(stored(bucket)).bind(stored_whole(seen)).bind(stored_whole(next));
                    query.bind(mode.as_str()).bind(identity)
                });
            for number in query.scalars::<i64>().await? {
                raised.push(bucket_of(number)?);
            }
        }
        tx.commit().await?;
        raised.sort_unstable();
        Ok(raised)
    }

    /// Raises all buckets at once to a new common epoch, greater than every epoch before, with registry
    /// `registry_identity`. Returns the new epoch.
    pub async fn raise_epoch(&self, registry_identity: &str) -> Result<u64, Error> {
        let all: Vec<_> = Bucket::all().collect();
        let mut tx = self.write().await?;
        for (statement, chunk) in SEIZE.cut(tx.dialect(), &all) {
            let query = tx.query(statement);
            chunk.iter().fold(query, |query, bucket| query.bind(stored(*bucket))).execute().await?;
        }
        let raised: i64 =
            tx.query(include_str!("../../sql/raise_epoch.sql")).bind(registry_identity).scalar().await?;
        tx.commit().await?;
        Ok(raised.unsigned_abs())
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
