//! Clock of the database's server, compared with this node's monotonic clock.
//!
//! Registry time follows the clock only within the clock's lease (`migrations/0007_clock_lease.sql`). A node
//! that reads the time prolongs the lease in the same statement, so the lease costs no extra commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use seatkeeper_core::{RegistryTime, Span};
use seatkeeper_host_clock::HostInstant;
use seatkeeper_postgres::Connections;
use sqlx::Postgres;
use sqlx::pool::PoolConnection;
use uuid::Uuid;

use super::connect::begin_long;
use super::fault::Fault;
use super::from_row::from_row;
use super::heartbeat_flow::HeartbeatFlow;
use super::limit::{LONG_ANSWER_MAX, answered, answered_long, run};
use super::row::{signed, time};
use super::section::Section;
use crate::clock_trust::{ClockSteps, ClockTrust};
use crate::{Error, Store};

/// Lease of the clock. A clock that jumps further ends no session.
const LEASE: Span = Span::from_secs(10);

/// Sessions renewed by the statement that restarts registry time. More would take longer than a statement may.
const RENEWED_AT_ONCE_MAX: i64 = 20_000;

/// Sessions renewed by a short statement.
const RENEWED_PER_PAGE_MAX: i64 = 2_000;

/// Time that a renewal ahead of the restart reaches beyond the clock, at first. Half of the time must be left for the
/// statement that restarts registry time.
const RENEWED_AHEAD_MIN: Duration = Duration::from_secs(120);

/// Age of a reading after which [`PostgresClock::keep`] reads the clock again. Several readings fit into a
/// lease.
const READING_AGE_MAX: Duration = Duration::from_secs(2);

/// A lag of the clock behind registry time is logged beyond this.
const BEHIND_NOTABLE_MILLIS: i64 = 1_000;

/// The clock of PostgreSQL's server, as known to this node.
#[derive(Debug)]
pub struct PostgresClock {
    connections: Connections,
    /// Set by the first call of [`keep`](Self::keep). A keeper prolongs the lease.
    is_keeper: AtomicBool,
    trust: Mutex<ClockTrust>,
    steps: Arc<ClockSteps>,
    latest: Mutex<Option<Reading>>,
    heartbeats: HeartbeatFlow,
}

/// The latest reading of the clock.
#[derive(Clone, Copy, Debug)]
struct Reading {
    asked: HostInstant,
    /// The clock's lease was not over.
    is_leased: bool,
    /// This node believes the clock.
    is_believed: bool,
}

from_row! {
    /// A row of `registry.tell_time`.
    struct TimeRow {
        now: i64,
        clock: i64,
        is_trusted: bool,
        latest: i64,
        now_in_bucket: i64,
    }
}

from_row! {
    /// A row of `registry.trust_clock`.
    struct TrustRow {
        sessions: i64,
        skipped: i64,
    }
}

from_row! {
    /// A row of `registry.renew_ahead`.
    struct PageRow {
        last_id: Option<Uuid>,
        sessions: i64,
    }
}

/// Registry time, as read from the database.
pub(super) struct TimeTold {
    pub(super) now: RegistryTime,
    /// The time of the bucket asked for, or `now`.
    pub(super) now_in_bucket: RegistryTime,
    /// Registry time follows the clock. If false, registry time stands still.
    pub(super) runs: bool,
    /// Registry time stands still because the clock's lease is over, and not because the clock was set back.
    pub(super) is_frozen: bool,
}

impl PostgresClock {
    pub(super) fn new(connections: Connections) -> Self {
        let steps = Arc::<ClockSteps>::default();
        let trust = Mutex::new(ClockTrust::new(Store::PostgreSql, Arc::clone(&steps)));
        let (is_keeper, latest) = (AtomicBool::new(false), Mutex::default());
        Self { connections, is_keeper, trust, steps, latest, heartbeats: HeartbeatFlow::new() }
    }

    /// Returns the count of heartbeats written to PostgreSQL.
    pub(super) fn heartbeats(&self) -> &HeartbeatFlow {
        &self.heartbeats
    }

    /// Returns the steps of the clock seen by this node.
    pub fn steps(&self) -> &Arc<ClockSteps> {
        &self.steps
    }

    /// Prolongs the clock's lease while this node believes the clock and heartbeats get through. After a jump,
    /// restarts registry time once the clock is believed again. For nodes that serve clients, to be called
    /// several times a second.
    pub async fn keep(&self) -> Result<(), Error> {
        self.is_keeper.store(true, Ordering::Relaxed);
        if !self.heartbeats.gets_through() {
            return Ok(());
        }
        let is_recent = |reading: &Reading| {
            reading.is_leased && reading.is_believed && reading.asked.elapsed() < READING_AGE_MAX
        };
        if self.latest.lock().as_ref().is_some_and(is_recent) {
            return Ok(());
        }
        self.tell_time(self.connection().await?, Section::FIRST_REBUILT, None).await?;
        let latest = *self.latest.lock();
        if latest.is_some_and(|reading| reading.is_believed && !reading.is_leased) {
            self.restart_time().await?;
        }
        Ok(())
    }

    /// Reads the clock, and registry time of the section that starts at bucket `section` and of a bucket in the section.
    /// Prolongs the clock's lease if this node believes the clock.
    pub(super) async fn tell_time(
        &self,
        connection: PoolConnection<Postgres>,
        section: i16,
        bucket: Option<i16>,
    ) -> Result<TimeTold, Fault> {
        let asked = HostInstant::now();
        let tell = sqlx::query_as(include_str!("sql/tell_time.sql"))
            .bind(section)
            .bind(self.not_after())
            .bind(signed(LEASE.as_millis()))
            .bind(bucket);
        let TimeRow { now, clock, is_trusted, latest, now_in_bucket } =
            run(connection, async |connection| tell.fetch_one(connection).await).await??;
        let told = TimeTold {
            now: time(now),
            now_in_bucket: time(now_in_bucket),
            runs: is_trusted && now <= clock,
            is_frozen: !is_trusted,
        };
        if !self.is_keeper.load(Ordering::Relaxed) {
            return Ok(told);
        }
        let checked = if is_trusted {
            self.trust.lock().check(time(clock), asked)
        } else {
            self.trust.lock().check_unleased(time(clock), asked, time(now))
        };
        *self.latest.lock() = Some(Reading { asked, is_leased: is_trusted, is_believed: checked.is_ok() });
        warn_of_a_clock_that_is_behind(latest - clock);
        Ok(told)
    }

    async fn connection(&self) -> Result<PoolConnection<Postgres>, Fault> {
        self.connections.acquire().await.map_err(Fault::Refused)
    }

    /// Gives each session a full TTL, and restarts registry time by a clock that this node believes.
    async fn restart_time(&self) -> Result<(), Fault> {
        let count = sqlx::query_scalar(include_str!("sql/has_many_sessions.sql")).bind(RENEWED_AT_ONCE_MAX);
        let has_many: bool =
            run(self.connection().await?, async |connection| count.fetch_one(connection).await).await??;
        let renewed = if has_many { self.renew_ahead().await? } else { 0 };
        self.trust_clock(renewed).await
    }

    /// Renews the sessions in short statements, far enough ahead that few are left for the statement that restarts
    /// registry time. Claims and heartbeats go on meanwhile. Returns the number of renewed sessions.
    async fn renew_ahead(&self) -> Result<i64, Fault> {
        let mut ahead = RENEWED_AHEAD_MIN;
        loop {
            tracing::warn!(
                ahead_s = ahead.as_secs(),
                "registry time in PostgreSQL stands still, and many sessions are renewed before it runs again; seats \
                 of silent clients come free up to `ahead_s` later than usual"
            );
            let began = HostInstant::now();
            let renewed = self.renew_pages(ahead).await?;
            if began.elapsed() + LONG_ANSWER_MAX <= ahead / 2 {
                return Ok(renewed);
            }
            ahead *= 2;
        }
    }

    /// Renews the sessions once, page by page.
    async fn renew_pages(&self, ahead: Duration) -> Result<i64, Fault> {
        let (mut after, mut renewed) = (Uuid::nil(), 0);
        loop {
            let renew = sqlx::query_as(include_str!("sql/renew_ahead.sql"))
                .bind(after)
                .bind(RENEWED_PER_PAGE_MAX)
                .bind(signed(ahead.as_millis() as u64))
                .bind(self.not_after());
            let PageRow { last_id, sessions } =
                run(self.connection().await?, async |connection| renew.fetch_one(connection).await).await??;
            renewed += sessions;
            match last_id {
                Some(last) => after = last,
                None => return Ok(renewed),
            }
        }
    }

    /// Renews the sessions that were not renewed ahead, and restarts registry time in the same transaction.
    async fn trust_clock(&self, renewed_ahead: i64) -> Result<(), Fault> {
        let mut transaction = answered(begin_long(self.connection().await?)).await??;
        let trust = sqlx::query_as(include_str!("sql/trust_clock.sql"))
            .bind(self.not_after())
            .bind(signed(LEASE.as_millis()))
            .fetch_optional(&mut *transaction);
        let trusted: Option<TrustRow> = answered_long(trust).await??;
        answered_long(transaction.commit()).await?.map_err(Fault::of_commit)?;
        *self.latest.lock() = None;
        if let Some(TrustRow { sessions, skipped }) = trusted {
            tracing::warn!(
                sessions = sessions + renewed_ahead,
                skipped_ms = skipped,
                "registry time in PostgreSQL runs again, after a stop while heartbeats failed, no node served, or the \
                 clock of PostgreSQL's server was wrong; each session has a full TTL from now"
            );
        }
        Ok(())
    }

    /// Returns the end of a lease from now: a clock that is read later than this has jumped, or the statement was late.
    /// Returns 0 if this node must not prolong the lease: the reading is unknown, the node is no keeper, or heartbeats
    /// fail.
    fn not_after(&self) -> i64 {
        if !self.is_keeper.load(Ordering::Relaxed) || !self.heartbeats.gets_through() {
            return 0;
        }
        let expected = self.trust.lock().expected(HostInstant::now());
        expected.map_or(0, |clock| signed((clock + LEASE).as_millis()))
    }
}

pub(super) fn warn_of_a_clock_that_is_behind(behind_ms: i64) {
    if behind_ms > BEHIND_NOTABLE_MILLIS {
        tracing::warn!(
            behind_ms,
            "PostgreSQL's clock went back; no session expires until the clock has caught up; check time synchronisation"
        );
    }
}
