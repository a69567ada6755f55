//! Puts the usage of a window on record.

use chrono::{DateTime, Utc};
use futures_util::TryStreamExt as _;
use seatkeeper_core::{RegistryTime, Span, Usage, Window};
use uuid::Uuid;

use super::batches::{Batch, Cutter};
use super::metered::Place;
use super::record::payload_of;
use super::tally::Turns;
use crate::database::Tx;
use crate::jobs::{Fence, fence};
use crate::row::stored_whole;
use crate::{Error, Ledger, times};

/// How long a window is at most: what it may need is read again for each so many of its sessions.
const WINDOW_MAX: Span = Span::from_secs(24 * 3_600);
/// Sessions that one statement reads: while it does, what is written piles up beside the database, and the
/// admission after it waits for that to be moved in.
const SESSIONS_PER_READ_MAX: u32 = 20_000;
/// Records that are staged in one transaction, unless a single batch has more: an admission that waits
/// behind it does not wait long.
const STAGED_RECORDS_PER_COMMIT_MAX: usize = 2_000;
/// Batches of an emission that broke off, deleted in one transaction.
const DROPPED_BATCHES_PER_COMMIT_MAX: u32 = 200;

/// A window that is on record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emitted {
    /// From when until when.
    pub window: Window,
    /// How many sessions were metered.
    pub records: u64,
    /// In how many batches.
    pub batches: u64,
    /// What they used in all.
    pub usage: Usage,
}

impl Ledger {
    /// Puts the next window on record: what the sessions of all capacities used from the end of the last
    /// one, or from the first of these sessions on, in batches of `batch_records` at most. The window ends at
    /// `until`, or after a day if there is more; and then a day after someone used something again, if in
    /// that day nobody did. None: nothing was used until `until`, and the next window starts where this one
    /// would have.
    ///
    /// All that happened before `until` must be on record, and nothing earlier may follow. The run's fence
    /// holds every write; if this fails or is dropped, no window was added, and the next emission makes the
    /// same batches again, or longer ones with the same ids.
    pub async fn emit_usage(
        &self,
        until: RegistryTime,
        batch_records: usize,
        fence: &Fence,
    ) -> Result<Option<Emitted>, Error> {
        self.drop_staged(fence).await?;
        let Some(starts) = self.usage_starts_at().await? else { return Ok(None) };
        let mut ends = until.min(starts + WINDOW_MAX);
        while let Some(window) = Window::new(starts, ends) {
            let emitted = self.stage_window(window, batch_records, fence).await?;
            if emitted.records > 0 {
                self.commit_window(window, fence).await?;
                return Ok(Some(emitted));
            }
            if ends == until {
                break;
            }
            let next = self.next_metered(ends).await?;
            ends = next.map_or(until, |next| until.min(next + WINDOW_MAX));
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
        let (mut place, mut read, mut turns) = (Place::default(), SESSIONS_PER_READ_MAX, Turns::default());
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

    /// When a session of a capacity first started, at `at` or later.
    async fn next_metered(&self, at: RegistryTime) -> Result<Option<RegistryTime>, Error> {
        let starts: Option<DateTime<Utc>> = self
            .readers()
            .query(include_str!("../../sql/next_metered.sql"))
            .bind(times::stored(at))
            .scalar()
            .await?;
        Ok(starts.map(times::from_stored))
    }

    async fn usage_starts_at(&self) -> Result<Option<RegistryTime>, Error> {
        let starts: Option<DateTime<Utc>> =
            self.readers().query(include_str!("../../sql/usage_starts_at.sql")).scalar().await?;
        Ok(starts.map(times::from_stored))
    }

    /// Deletes what an emission staged that did not come to its end.
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
            batch.insert(&mut tx, window).await?;
        }
        stage.records = 0;
        tx.commit().await
    }

    async fn commit_window(&self, window: Window, fence: &Fence) -> Result<(), Error> {
        let mut tx = self.write().await?;
        fence::hold(&mut tx, fence).await?;
        let done = tx
            .query(include_str!("../../sql/commit_window.sql"))
            .bind(times::stored(window.starts()))
            .bind(times::stored(window.ends()))
            .execute()
            .await?;
        if done != 1 {
            // Nobody but another run can have moved the end of the last window.
            return Err(Error::StaleRun);
        }
        tx.commit().await
    }
}

/// Batches that wait for their transaction.
struct Stage {
    batches: Vec<Batch>,
    records: usize,
}

impl Stage {
    /// Takes a batch, and says whether it is time to write.
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

impl Batch {
    async fn insert(&self, tx: &mut Tx, window: Window) -> Result<(), Error> {
        tx.query(include_str!("../../sql/stage_batch.sql"))
            .bind(self.id)
            .bind(times::stored(window.starts()))
            .bind(self.tenant.as_str())
            .bind(stored_whole(self.number))
            .bind(stored_whole(self.records.len() as u64))
            .bind(stored_whole(self.usage().as_micros()))
            .bind(times::stored(window.ends()))
            .execute()
            .await?;
        tx.query(include_str!("../../sql/stage_payload.sql"))
            .bind(self.id)
            .bind(payload_of(&self.records)?)
            .execute()
            .await?;
        Ok(())
    }
}
