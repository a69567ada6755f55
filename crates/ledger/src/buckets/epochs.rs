//! The epoch of each bucket, and which registry serves it.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use seatkeeper_core::{BUCKETS, Bucket, Event};

use crate::chunks::{ChunkedStatement, sized_texts};
use crate::database::{Row, Tx};
use crate::row::{Fields, corrupt, stored_whole};
use crate::{Error, Ledger};

/// A statement about any number of buckets takes all of them at once.
const ROWS_MAX: usize = BUCKETS as usize;

static HOLD: ChunkedStatement =
    ChunkedStatement::new(|| sized_texts(include_str!("../../sql/hold_buckets.sql"), 1, ROWS_MAX));
static SEIZE: ChunkedStatement =
    ChunkedStatement::new(|| sized_texts(include_str!("../../sql/seize_buckets.sql"), 1, ROWS_MAX));
static RAISE: ChunkedStatement =
    ChunkedStatement::new(|| sized_texts(include_str!("../../sql/raise_buckets.sql"), 5, ROWS_MAX));

/// Which registry serves a bucket, the same for all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BucketMode {
    /// The one that is configured.
    Registry,
    /// It is out of reach: PostgreSQL serves in its place.
    Ledger,
    /// It is out of reach: each node admits on its own, where a pool's policy lets it.
    Allow,
    /// It is out of reach: nothing is admitted.
    Deny,
}

/// A text that names no mode of a bucket.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a mode of a bucket")]
pub struct NotABucketMode;

/// A bucket as it stands in the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketRow {
    /// The bucket.
    pub bucket: Bucket,
    /// Its epoch: 0 at first, and only ever more.
    pub epoch: u64,
    /// Which registry serves it.
    pub mode: BucketMode,
    /// The identity that this registry had when it was filled; none: it has none, or was never filled.
    pub identity: Option<String>,
    /// The epoch was raised in this ledger. If not, the ledger is a copy: a standby that was promoted or a backup that
    /// was restored. A copy may lack the latest records and raises.
    pub was_raised_here: bool,
}

/// A bucket that is to begin a new epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EpochRaise {
    /// The bucket.
    pub bucket: Bucket,
    /// The epoch at which the bucket was seen.
    pub seen: u64,
    /// The epoch that it begins; more than `seen`.
    pub next: u64,
}

/// A bucket whose epoch is another one than events say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaleBucket {
    /// The bucket.
    pub bucket: Bucket,
    /// Its epoch in the ledger.
    pub epoch: u64,
}

impl Ledger {
    /// All buckets in their order, as of one instant.
    pub async fn buckets(&self) -> Result<Vec<BucketRow>, Error> {
        let rows = self.readers().query(include_str!("../../sql/buckets.sql")).fetch_all().await?;
        rows.iter().map(BucketRow::read).collect()
    }

    /// Gives each of these buckets that is still at the epoch that was seen the next epoch, this mode and this registry, and
    /// returns these buckets in order. The call waits for batches of events that are being applied. Later batches are
    /// refused unless their events are of the new epoch.
    pub async fn raise(
        &self,
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

    /// Raises the epoch of every bucket in one step to one that none had, notes which registry serves them from
    /// now on, and returns the new epoch.
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
pub(crate) async fn read_buckets(tx: &mut Tx) -> Result<Vec<BucketRow>, Error> {
    let rows = tx.query(include_str!("../../sql/buckets.sql")).fetch_all().await?;
    rows.iter().map(BucketRow::read).collect()
}

/// Locks these buckets until this transaction is over, and returns their epochs. Of those who lock one of them
/// so, one at a time gets on; and the epochs stay as they are.
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

/// Likewise those of these events; if one is of another epoch than its bucket, [`Error::StaleEpoch`].
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

impl BucketMode {
    const ALL: [Self; 4] = [Self::Registry, Self::Ledger, Self::Allow, Self::Deny];

    /// The mode's name in records and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Registry => "registry",
            Self::Ledger => "ledger",
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }
}

impl FromStr for BucketMode {
    type Err = NotABucketMode;
    fn from_str(text: &str) -> Result<Self, NotABucketMode> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == text).ok_or(NotABucketMode)
    }
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

/// A bucket as the database stores it.
pub(crate) fn stored(bucket: Bucket) -> i64 {
    i64::from(bucket.number())
}

/// The bucket with a number that is stored.
pub(super) fn bucket_of(number: i64) -> Result<Bucket, Error> {
    let bucket = u16::try_from(number).ok().and_then(Bucket::new);
    bucket.ok_or_else(|| corrupt("bucket", "a number that no bucket has"))
}
