//! Repairs registry time on record after a wrong clock has moved the record ahead of the true time.

use chrono::{DateTime, Utc};
use seatkeeper_core::{RegistryTime, Span};

use crate::database::{Row, Tx, refuse_in_sole_use};
use crate::row::{Fields, stored_whole};
use crate::{Error, Ledger, audit, times};

/// The record may be ahead of the true time by 60 s without being wrong, because the clocks of healthy hosts
/// differ.
const AHEAD_TOLERATED: Span = Span::from_secs(60);

/// A node counts as live for 5 s after being seen.
const NODE_LIVE_MILLIS: u64 = 5_000;

/// A repair of registry time on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockRepair {
    /// The true time of the repair. Registry time goes on from here.
    pub repaired_at: RegistryTime,
    /// The latest time on record before the repair.
    pub wrong_until: RegistryTime,
    /// The id of the newest audit record before the repair. Records up to this id may be dated up to
    /// `wrong_until`.
    pub audit_head: u64,
    /// The operator repairing the time.
    pub actor: String,
    /// The number of sessions that got a full TTL: all live sessions, except for capacities held since before
    /// `repaired_at`. Such a capacity keeps its end.
    pub sessions: u64,
}

/// A prepared repair. A dropped plan changes nothing.
pub struct PlannedRepair {
    tx: Tx,
    /// The repair as recorded.
    pub repair: ClockRepair,
}

impl PlannedRepair {
    /// Commits the repair.
    pub async fn apply(self) -> Result<ClockRepair, Error> {
        self.tx.commit().await?;
        Ok(self.repair)
    }
}

impl Ledger {
    /// Prepares to set registry time back to `to`, the true time. Returns `Ok(None)` if the record is not
    /// ahead of `to` by more than a minute, `Err(NodesLive)` or `Err(InUse)` while nodes serve, and `Err(UsageMetered)` if
    /// usage is metered past `to`.
    pub async fn plan_clock_repair(
        &self,
        to: RegistryTime,
        actor: &str,
    ) -> Result<Option<PlannedRepair>, Error> {
        let mut tx = self.write().await?;
        let mut wrong_until = RegistryTime::default();
        for statement in
            [include_str!("../sql/last_record_time.sql"), include_str!("../sql/last_heartbeat.sql")]
        {
            let last: Option<DateTime<Utc>> = tx.query(statement).scalar().await?;
            wrong_until = last.map(times::from_stored).unwrap_or_default().max(wrong_until);
        }
        if wrong_until <= to + AHEAD_TOLERATED {
            return Ok(None);
        }
        refuse_while_nodes_live(&mut tx).await?;
        refuse_if_metered_past(&mut tx, to).await?;
        let audit_head = audit::head(&mut tx).await?.unsigned_abs();
        let at = times::stored(to);
        let repair_sessions = tx.query(include_str!("../sql/repair_sessions.sql"));
        let sessions = repair_sessions.bind(at).execute().await?;
        for statement in [
            include_str!("../sql/repair_jobs.sql"),
            include_str!("../sql/repair_outbox.sql"),
            include_str!("../sql/repair_idempotency_keys.sql"),
            include_str!("../sql/repair_group_contents.sql"),
            include_str!("../sql/set_trusted_time.sql"),
        ] {
            tx.query(statement).bind(at).execute().await?;
        }
        for statement in
            [include_str!("../sql/repair_nodes.sql"), include_str!("../sql/repair_bucket_locks.sql")]
        {
            tx.query(statement).execute().await?;
        }
        let actor = actor.to_owned();
        let repair = ClockRepair { repaired_at: to, wrong_until, audit_head, actor, sessions };
        repair.record(&mut tx).await?;
        Ok(Some(PlannedRepair { tx, repair }))
    }

    /// Returns all repairs of registry time, in order.
    pub async fn clock_repairs(&self) -> Result<Vec<ClockRepair>, Error> {
        let rows = self.readers().query(include_str!("../sql/clock_repairs.sql")).fetch_all().await?;
        rows.iter().map(ClockRepair::read).collect()
    }
}

impl ClockRepair {
    pub(crate) fn read(row: &Row) -> Result<Self, Error> {
        let fields = Fields(row);
        Ok(Self {
            repaired_at: fields.time("repaired_at")?,
            wrong_until: fields.time("wrong_until")?,
            audit_head: fields.whole("audit_head")?,
            actor: fields.value("actor")?,
            sessions: fields.whole("sessions")?,
        })
    }

    async fn record(&self, tx: &mut Tx) -> Result<(), Error> {
        tx.query(include_str!("../sql/record_clock_repair.sql"))
            .bind(times::stored(self.repaired_at))
            .bind(times::stored(self.wrong_until))
            .bind(stored_whole(self.audit_head))
            .bind(self.actor.as_str())
            .bind(stored_whole(self.sessions))
            .execute()
            .await?;
        Ok(())
    }
}

/// Returns `Err(InUse)` while a process uses the ledger alone, and `Err(NodesLive)` if a node was seen within 5 s. A node
/// seen in the future died while the clock was wrong and does not count.
async fn refuse_while_nodes_live(tx: &mut Tx) -> Result<(), Error> {
    refuse_in_sole_use(tx).await?;
    let now = tx.now().await?;
    let mut live = 0;
    for row in &tx.query(include_str!("../sql/nodes.sql")).fetch_all().await? {
        let seen: DateTime<Utc> = Fields(row).value("seen_at")?;
        live += u64::from((now - seen).num_milliseconds().unsigned_abs() < NODE_LIVE_MILLIS);
    }
    if live > 0 { Err(Error::NodesLive { count: live }) } else { Ok(()) }
}

async fn refuse_if_metered_past(tx: &mut Tx, to: RegistryTime) -> Result<(), Error> {
    let until: Option<DateTime<Utc>> = tx.query(include_str!("../sql/metered_until.sql")).scalar().await?;
    match until.filter(|until| times::from_stored(*until) > to) {
        Some(until) => Err(Error::UsageMetered { until: until.to_rfc3339() }),
        None => Ok(()),
    }
}
