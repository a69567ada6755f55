//! Raises of epochs, and the replay of the journal of the epoch that served last. A rebuild may break off after its
//! raise; the bucket's row therefore names the epoch to replay until the replay is noted.

use std::collections::BTreeSet;

use seatkeeper_core::{Bucket, epoch_after, epoch_not_before};
use uuid::Uuid;

use super::epochs::{BucketMode, ROWS_MAX, StaleBucket, bucket_of, stored};
use crate::chunks::{ChunkedStatement, sized_texts};
use crate::database::Row;
use crate::nodes::refuse_overlooked_raise;
use crate::row::{Fields, stored_whole};
use crate::{Error, Ledger, copies, times};

static SEIZE: ChunkedStatement =
    ChunkedStatement::new(|| sized_texts(include_str!("../../sql/seize_buckets.sql"), 1, ROWS_MAX));
static RAISE: ChunkedStatement =
    ChunkedStatement::new(|| sized_texts(include_str!("../../sql/raise_buckets.sql"), 5, ROWS_MAX));

/// A bucket due for a new epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EpochRaise {
    /// The bucket.
    pub bucket: Bucket,
    /// The epoch seen by the caller.
    pub seen: u64,
    /// The lowest new epoch, greater than `seen`. In a copy of a ledger, [`Ledger::raise`] may choose a greater epoch
    /// with the same random bits.
    pub next: u64,
}

/// A bucket whose epoch was raised, and the journal for the rebuild to replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RaisedBucket {
    /// The bucket.
    pub bucket: Bucket,
    /// The new epoch.
    pub epoch: u64,
    /// The journal to replay before a registry serves the new epoch.
    pub unreplayed: Unreplayed,
}

/// The journal of the epoch that served last: its events may not be on record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreplayed {
    /// The epoch of the events.
    pub epoch: u64,
    /// The bucket's mode in that epoch. The registry that serves in this mode has the journal.
    pub mode: BucketMode,
    /// The lowest fallback mode of the epochs since, without the epoch of the raise. The rebuilds of these epochs broke
    /// off, but nodes renew sessions without a registry once a fallback mode is known. `None` without a fallback mode
    /// since.
    pub lower_mode: Option<BucketMode>,
}

impl Ledger {
    /// Raises each bucket still at epoch `seen` to epoch `next`, with mode `mode` and registry `identity` (a
    /// compare-and-swap). In a copy of a ledger, the new epoch is also greater than the epochs that the copy may have
    /// lost. Returns the raised buckets in order, with the journal that the caller must replay and
    /// [note](Ledger::note_replay) before a registry serves the new epoch. The call waits for batches in the course of
    /// being applied; later batches are refused unless their events have the new epoch.
    ///
    /// `Err(RaiseOverlooked)` while a remembered node may extend its lease without the word of node `raiser`.
    pub async fn raise(
        &self,
        raiser: Uuid,
        raises: &[EpochRaise],
        mode: BucketMode,
        identity: Option<&str>,
    ) -> Result<Vec<RaisedBucket>, Error> {
        let raises: Vec<_> = raises.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
        let mut tx = self.write().await?;
        for (statement, chunk) in SEIZE.cut(tx.dialect(), &raises) {
            let query = tx.query(statement);
            chunk.iter().fold(query, |query, raise| query.bind(stored(raise.bucket))).execute().await?;
        }
        refuse_overlooked_raise(&mut tx, raiser).await?;
        let now = tx.now().await?;
        copies::note(&mut tx, times::from_stored(now)).await?;
        let floor = copies::epoch_counter_floor(&mut tx).await?;
        let mut raised = Vec::new();
        for (statement, chunk) in RAISE.cut(tx.dialect(), &raises) {
            let query =
                chunk.iter().fold(tx.query(statement), |query, &EpochRaise { bucket, seen, next }| {
                    let next = epoch_not_before(next, floor);
                    let query = query.bind(stored(bucket)).bind(stored_whole(seen)).bind(stored_whole(next));
                    query.bind(mode.as_str()).bind(identity)
                });
            for row in &query.fetch_all().await? {
                raised.push(RaisedBucket::read(row)?);
            }
        }
        tx.commit().await?;
        raised.sort_unstable_by_key(|raised| raised.bucket);
        Ok(raised)
    }

    /// Raises all buckets at once to a new common epoch, greater than every epoch before, with registry
    /// `registry_identity` and the random bits `random`, which must differ between raises. Returns the new epoch. Like
    /// [`raise`](Self::raise), the call notes a ledger that is a copy, and the new epoch is greater than the epochs
    /// that the copy may have lost.
    pub async fn raise_epoch(&self, registry_identity: &str, random: u16) -> Result<u64, Error> {
        let all: Vec<_> = Bucket::all().collect();
        let mut tx = self.write().await?;
        for (statement, chunk) in SEIZE.cut(tx.dialect(), &all) {
            let query = tx.query(statement);
            chunk.iter().fold(query, |query, bucket| query.bind(stored(*bucket))).execute().await?;
        }
        let now = tx.now().await?;
        copies::note(&mut tx, times::from_stored(now)).await?;
        let floor = copies::epoch_counter_floor(&mut tx).await?;
        let last: i64 = tx.query(include_str!("../../sql/greatest_epoch.sql")).scalar().await?;
        let next = epoch_not_before(epoch_after(last.unsigned_abs(), random), floor);
        let raise = tx.query(include_str!("../../sql/raise_epoch.sql"));
        raise.bind(registry_identity).bind(stored_whole(next)).execute().await?;
        tx.commit().await?;
        Ok(next)
    }

    /// Notes that the events of the [`Unreplayed`] journal are on record or dropped for good. A rebuild calls this after
    /// its replay and before a registry serves `epoch`: the next raise makes `epoch` the epoch to replay.
    ///
    /// `Err(StaleEpoch)` if the bucket's epoch is not `epoch`: another node has raised the epoch and replays the journal.
    pub async fn note_replay(&self, bucket: Bucket, epoch: u64) -> Result<(), Error> {
        let mut tx = self.write().await?;
        let note = tx.query(include_str!("../../sql/note_replay.sql"));
        if note.bind(stored(bucket)).bind(stored_whole(epoch)).execute().await? == 0 {
            let epoch = tx.query(include_str!("../../sql/epoch.sql")).bind(stored(bucket));
            let epoch = epoch.scalar::<i64>().await?.unsigned_abs();
            return Err(Error::StaleEpoch { buckets: vec![StaleBucket { bucket, epoch }] });
        }
        tx.commit().await
    }
}

impl RaisedBucket {
    pub(super) fn read(row: &Row) -> Result<Self, Error> {
        let fields = Fields(row);
        let unreplayed = Unreplayed {
            epoch: fields.whole("unreplayed_epoch")?,
            mode: fields.named("unreplayed_mode")?,
            lower_mode: fields.named_maybe("lower_mode")?,
        };
        Ok(Self { bucket: bucket_of(fields.value("id")?)?, epoch: fields.whole("epoch")?, unreplayed })
    }
}
