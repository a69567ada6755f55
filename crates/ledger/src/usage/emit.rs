//! Emission: records the usage of a window.

use chrono::{DateTime, Utc};
use futures_util::TryStreamExt as _;
use seatkeeper_core::{RegistryTime, Span, Usage, Window};
use uuid::Uuid;

use super::batches::{Batch, Cutter};
use super::metered::Position;
use super::tally::Turns;
use crate::jobs::{Fence, fence};
use crate::row::stored_whole;
use crate::{Error, Ledger, times};

/// No window with usage crosses a midnight (UTC), so days and months have exact sums. The sessions of a window are
/// read in pages, each repeating the query for the whole window.
const DAY: Span = Span::from_secs(24 * 3_600);
/// Sessions read by one statement. While a statement reads, SQLite's write-ahead log grows, and the next
/// admission waits for the checkpoint.
const SESSIONS_PER_READ_MAX: u32 = 20_000;
/// Records staged in one transaction, unless a single batch has more. The limit keeps short the wait of an
/// admission behind the transaction.
const STAGED_RECORDS_PER_COMMIT_MAX: usize = 2_000;
/// Batches of an interrupted emission deleted in one transaction.
const DROPPED_BATCHES_PER_COMMIT_MAX: u32 = 200;

/// A window on record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emitted {
    /// The start and the end.
    pub window: Window,
    /// The number of records, one for each metered session.
    pub records: u64,
    /// The number of batches.
    pub batches: u64,
    /// The total usage.
    pub usage: Usage,
}

impl Ledger {
    /// Records the next usage window: the usage of all capacity sessions since the end of the last window, or
    /// since the start of the first session, in batches of at most `batch_records` records.
    ///
    /// The window ends at `until`, or at the next midnight (UTC) if `until` is later. Days without usage before the
    /// next use go on record as one window without records. `None` means no usage before `until`; the next emission
    /// starts at the same time.
    ///
    /// All events before `until` must be on record, and no earlier event may follow. The run's fence guards
    /// every write. `Err(UsageHeld)` in a copy of the ledger, until an operator confirms. After an error or a dropped
    /// call no window was added, and the next emission makes the same batches again, or longer batches with the same
    /// ids.
    pub async fn emit_usage(
        &self,
        until: RegistryTime,
        batch_records: usize,
        fence: &Fence,
    ) -> Result<Option<Emitted>, Error> {
        self.refuse_in_copy(fence).await?;
        self.drop_staged(fence).await?;
        let Some(mut starts) = self.usage_starts_at().await? else { return Ok(None) };
        while let Some(window) = Window::new(starts, until.min(midnight_before(starts) + DAY)) {
            let emitted = self.stage_window(window, batch_records, fence).await?;
            if emitted.records > 0 {
                self.commit_window(&emitted, fence).await?;
                return Ok(Some(emitted));
            }
            let next = self.next_metered(window.ends()).await?;
            let Some(next) = next.filter(|next| *next < until) else { break };
            // The window ends at a midnight, because `next` lies between its end and `until`.
            let Some(unused) = Window::new(starts, midnight_before(next)) else { break };
            self.commit_window(&Emitted { window: unused, ..emitted }, fence).await?;
            starts = unused.ends();
        }
        Ok(None)
    }

    /// Stages all batches of a window.
    async fn stage_window(
        &self,
        window: Window,
        batch_records: usize,
        fence: &Fence,
    ) -> Result<Emitted, Error> {
        let mut emitted = Emitted { window, records: 0, batches: 0, usage: Usage::ZERO };
        let mut cutter = Cutter::new(window, batch_records.max(1));
        let mut stage = Stage { batches: Vec::new(), records: 0 };
        let (mut place, mut read, mut turns) = (Position::default(), SESSIONS_PER_READ_MAX, Turns::default());
        while read == SESSIONS_PER_READ_MAX {
            let mut sessions = std::pin::pin!(self.metered_in(window, &place, read));
            read = 0;
            while let Some(session) = sessions.try_next().await? {
                turns.read().await;
                read += 1;
                if read == SESSIONS_PER_READ_MAX {
                    place = session.place();
                }
                if let Some(batch) = cutter.take(session) {
                    emitted.count(&batch);
                    if stage.add(batch) {
                        self.stage(&mut stage, window, fence).await?;
                    }
                }
            }
        }
        if let Some(batch) = cutter.finish() {
            emitted.count(&batch);
            stage.add(batch);
        }
        self.stage(&mut stage, window, fence).await?;
        Ok(emitted)
    }

    /// Returns the earliest time, `at` or later, at which a capacity session is live.
    async fn next_metered(&self, at: RegistryTime) -> Result<Option<RegistryTime>, Error> {
        let starts: Option<DateTime<Utc>> = self
            .readers()
            .query(include_str!("../../sql/next_metered.sql"))
            .bind(times::stored(at))
            .scalar_long()
            .await?;
        Ok(starts.map(times::from_stored))
    }

    async fn usage_starts_at(&self) -> Result<Option<RegistryTime>, Error> {
        let starts: Option<DateTime<Utc>> =
            self.readers().query(include_str!("../../sql/usage_starts_at.sql")).scalar_long().await?;
        Ok(starts.map(times::from_stored))
    }

    /// Deletes the staged batches of an interrupted emission.
    async fn drop_staged(&self, fence: &Fence) -> Result<(), Error> {
        loop {
            let staged: Vec<Uuid> = self
                .readers()
                .query(include_str!("../../sql/staged_batches.sql"))
                .bind(i64::from(DROPPED_BATCHES_PER_COMMIT_MAX))
                .scalars()
                .await?;
            if staged.is_empty() {
                return Ok(());
            }
            let mut tx = self.write().await?;
            fence::hold(&mut tx, fence).await?;
            for batch in staged {
                for statement in
                    [include_str!("../../sql/drop_payload.sql"), include_str!("../../sql/drop_batch.sql")]
                {
                    tx.query(statement).bind(batch).execute().await?;
                }
            }
            tx.commit().await?;
        }
    }

    async fn stage(&self, stage: &mut Stage, window: Window, fence: &Fence) -> Result<(), Error> {
        if stage.batches.is_empty() {
            return Ok(());
        }
        let mut tx = self.write().await?;
        fence::hold(&mut tx, fence).await?;
        for batch in stage.batches.drain(..) {
            let (starts, due) = (times::stored(window.starts()), times::stored(window.ends()));
            batch.insert(&mut tx, starts, due).await?;
        }
        stage.records = 0;
        tx.commit().await
    }

    async fn commit_window(&self, emitted: &Emitted, fence: &Fence) -> Result<(), Error> {
        let mut tx = self.write().await?;
        fence::hold(&mut tx, fence).await?;
        let done = tx
            .query(include_str!("../../sql/commit_window.sql"))
            .bind(times::stored(emitted.window.starts()))
            .bind(times::stored(emitted.window.ends()))
            .bind(stored_whole(emitted.records))
            .execute()
            .await?;
        if done != 1 {
            // A later run of the job has added a window, or a copy of the ledger has taken the ledger's place.
            return Err(Error::StaleRun);
        }
        tx.commit().await
    }
}

/// Returns the latest midnight (UTC) at `at` or earlier.
fn midnight_before(at: RegistryTime) -> RegistryTime {
    RegistryTime::from_millis(at.as_millis() / DAY.as_millis() * DAY.as_millis())
}

/// Batches to be staged in the next transaction.
struct Stage {
    batches: Vec<Batch>,
    records: usize,
}

impl Stage {
    /// Adds a batch. Returns `true` once the batches should be written.
    fn add(&mut self, batch: Batch) -> bool {
        self.records += batch.records.len();
        self.batches.push(batch);
        self.records >= STAGED_RECORDS_PER_COMMIT_MAX
    }
}

impl Emitted {
    fn count(&mut self, batch: &Batch) {
        self.batches += 1;
        self.records += batch.records.len() as u64;
        self.usage = self.usage + batch.usage();
    }
}
