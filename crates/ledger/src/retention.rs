//! Purges old history and keeps the rest verifiable.
//!
//! A purge cuts a pool's session stream at a number. Records up to the cut are deleted, except for the
//! admissions of sessions live at the cut: a replay starts from these admissions. An event up to the cut counts
//! as recorded when a registry's journal brings the event late ([`Ledger::apply`]). The entitlement stream is
//! never cut, because without the stream no limit could be proven.

use chrono::{DateTime, Utc};
use seatkeeper_core::{PoolId, RegistryTime};

use crate::database::{Row, Tx};
use crate::jobs::Fence;
use crate::jobs::fence;
use crate::row::{Fields, stored_whole};
use crate::{Error, Ledger, times};

/// The result of a purge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    /// Deleted records of the audit log.
    pub records: u64,
    /// Deleted ended sessions.
    pub sessions: u64,
    /// More records are old enough to purge.
    pub more: bool,
}

/// The number at which a pool's session stream is cut.
struct NewCut {
    pool: PoolId,
    seq: u64,
    records: u64,
}

impl Ledger {
    /// Returns the registry time of the newest session event on record; `None` without events.
    pub async fn newest_event(&self) -> Result<Option<RegistryTime>, Error> {
        let at: Option<DateTime<Utc>> =
            self.readers().query(include_str!("../sql/newest_event.sql")).scalar().await?;
        Ok(at.map(times::from_stored))
    }

    /// Deletes about `batch` of the oldest records before `before`, and the sessions ended by them, in one
    /// transaction. Live sessions stay, as does every record needed to verify the rest. Once any node has
    /// metered usage, sessions of capacities stay until a usage window covers them. Admissions wait for the
    /// transaction, so `batch` should be some thousands at most. A run without its job's lock deletes nothing
    /// and gets [`Error::StaleRun`].
    pub async fn purge(&self, run: &Fence, before: RegistryTime, batch: u32) -> Result<Purged, Error> {
        // Candidates are read before the write transaction. Records are immutable, so an old record stays
        // old.
        let metered = self.metered_bound().await?.unwrap_or(before);
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

    /// Runs a statement on the records up to the cut, and returns the number of affected rows.
    async fn run(&self, tx: &mut Tx, statement: &'static str) -> Result<u64, Error> {
        let done = tx.query(statement).bind_pool(&self.pool).bind(stored_whole(self.seq)).execute().await?;
        Ok(done)
    }
}
