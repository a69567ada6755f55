//! History that is old enough is deleted, and what stays can still be verified.
//!
//! A pool's session stream is cut at a number: what stood up to it goes, but for the admissions of
//! the sessions that were live there. From those, a replay starts as it would from the first record.
//! The entitlement stream is never cut: without it no limit could be proven.

use seatkeeper_core::{PoolId, RegistryTime};

use crate::database::{Row, Tx};
use crate::jobs::Fence;
use crate::jobs::fence;
use crate::row::{Fields, stored_whole};
use crate::{Error, Ledger, times};

/// What a purge deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    /// Records of the audit log.
    pub records: u64,
    /// Ended sessions.
    pub sessions: u64,
    /// Whether more is old enough already.
    pub more: bool,
}

/// What is kept however old it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Nothing: usage is told to nobody.
    Nothing,
    /// Sessions of capacities that a window of usage still needs.
    Unmetered,
}

/// How far a pool's stream is to be cut.
struct NewCut {
    pool: PoolId,
    seq: u64,
    records: u64,
}

impl Ledger {
    /// The registry time of the newest event of a session on record; `None`: there is none.
    pub async fn newest_event(&self) -> Result<Option<RegistryTime>, Error> {
        let at = self.readers().query(include_str!("../sql/newest_event.sql")).scalar_optional().await?;
        Ok(at.map(times::from_stored))
    }

    /// Deletes about `batch` of the oldest records from before `before` and the sessions that ended by
    /// them, in one transaction. Live sessions and all that is needed to verify the rest stay. Admissions
    /// wait for it, so `batch` should be some thousands at most. A run that lost its lock deletes
    /// nothing: [`Error::StaleRun`].
    pub async fn purge(
        &self,
        run: &Fence,
        before: RegistryTime,
        keep: Keep,
        batch: u32,
    ) -> Result<Purged, Error> {
        // Read outside the transaction that deletes: records never change, so what was old stays old.
        let metered = match keep {
            Keep::Nothing => before,
            Keep::Unmetered => self.metered_until().await?.unwrap_or_default(),
        };
        let cuts = self.cuts_before(before, metered, batch).await?;
        let found: u64 = cuts.iter().map(|cut| cut.records).sum();
        let mut tx = self.write().await?;
        fence::hold(&mut tx, run).await?;
        let mut purged = Purged::default();
        for cut in &cuts {
            cut.run(&mut tx, include_str!("../sql/cut_pool.sql")).await?;
            purged.sessions += cut.run(&mut tx, include_str!("../sql/purge_sessions.sql")).await?;
            purged.records += cut.run(&mut tx, include_str!("../sql/purge_records.sql")).await?;
        }
        let alone = tx.query(include_str!("../sql/purge_alone.sql"));
        let alone = alone.bind(times::stored(before)).bind(i64::from(batch)).execute().await?;
        purged.records += alone;
        tx.commit().await?;
        purged.more = found.max(alone) >= u64::from(batch);
        Ok(purged)
    }

    async fn cuts_before(
        &self,
        before: RegistryTime,
        metered: RegistryTime,
        batch: u32,
    ) -> Result<Vec<NewCut>, Error> {
        let rows = self
            .readers()
            .query(include_str!("../sql/purge_candidates.sql"))
            .bind(times::stored(before))
            .bind(i64::from(batch))
            .bind(times::stored(metered))
            .fetch_all()
            .await?;
        rows.iter().map(NewCut::read).collect()
    }
}

impl NewCut {
    fn read(row: &Row) -> Result<Self, Error> {
        let fields = Fields(row);
        Ok(Self { pool: fields.pool()?, seq: fields.whole("seq")?, records: fields.whole("records")? })
    }

    /// Runs a statement on what stands up to the cut, and returns how many rows it touched.
    async fn run(&self, tx: &mut Tx, statement: &'static str) -> Result<u64, Error> {
        let done = tx
            .query(statement)
            .bind(self.pool.tenant.as_str())
            .bind(self.pool.kind.as_str())
            .bind(&*self.pool.name)
            .bind(stored_whole(self.seq))
            .execute()
            .await?;
        Ok(done)
    }
}
