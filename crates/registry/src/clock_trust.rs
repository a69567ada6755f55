//! Detection of jumps of a store's clock.
//!
//! A clock that jumps forward would end every session at once. Leases keep registries from following a jump
//! (`redis/scripts/lib/bucket.lua`, `migrations/0007_clock_lease.sql`). [`ClockTrust`] keeps nodes from
//! prolonging a lease by a wrong clock.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use seatkeeper_core::{CLOCK_SETTLING, CLOCK_TOLERANCE, ClockReading, RegistryTime, Span};
use seatkeeper_host_clock::HostInstant;

/// A forward jump beyond this span is doubted at first.
const STEP_DOUBTFUL: Span = Span::from_secs(10);

/// A doubted clock is believed after running steadily for this span.
const SETTLES_AFTER: Span = Span::from_secs(2);

/// Maximum distance between a clock that jumped and this node's wall clock. Beyond, the clock is never
/// believed.
const APART_MAX: Duration = Duration::from_secs(600);

/// A store of sessions. Its clock is compared with the monotonic clock of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// The memory of an embedded engine. The clock is the wall clock of the host; expiry goes by the monotonic clock alone.
    Memory,
    /// PostgreSQL.
    PostgreSql,
    /// Redis.
    Redis,
}

impl Store {
    /// Returns the name of the clock's owner in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "host",
            Self::PostgreSql => "postgresql",
            Self::Redis => "redis",
        }
    }
}

impl fmt::Display for Store {
    /// Writes the name of the clock's owner for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "this host",
            Self::PostgreSql => "PostgreSQL",
            Self::Redis => "Redis",
        })
    }
}

/// The steps of a store's clocks seen by this node, and the node's present trust in the clocks.
#[derive(Debug, Default)]
pub struct ClockSteps {
    ahead: AtomicU64,
    behind: AtomicU64,
    is_doubted: AtomicBool,
}

impl ClockSteps {
    /// Returns the number of times a clock went ahead of this node's monotonic clock by more than a second.
    pub fn ahead(&self) -> u64 {
        self.ahead.load(Relaxed)
    }

    /// Returns the number of times a clock fell behind this node's monotonic clock by more than a second.
    pub fn behind(&self) -> u64 {
        self.behind.load(Relaxed)
    }

    /// Returns false while this node does not believe the clock read last.
    pub fn is_trusted(&self) -> bool {
        !self.is_doubted.load(Relaxed)
    }

    /// Counts a step: negative if the clock was set back.
    pub fn note(&self, by_millis: i64) {
        if by_millis > 0 { &self.ahead } else { &self.behind }.fetch_add(1, Relaxed);
    }
}

/// Judges the clock of one server by comparison with this process's monotonic clock.
#[derive(Debug)]
pub(crate) struct ClockTrust {
    store: Store,
    steps: Arc<ClockSteps>,
    /// Origin of the monotonic clock.
    started: HostInstant,
    /// A believed reading, up to [`CLOCK_SETTLING`] old: a clock that runs too fast or too slowly drifts away
    /// from it.
    believed: Option<ClockReading>,
    /// The first reading after a jump that is still doubted.
    doubted: Option<ClockReading>,
}

impl ClockTrust {
    /// Creates a judge of a clock of `store` without readings.
    pub(crate) fn new(store: Store, steps: Arc<ClockSteps>) -> Self {
        Self { store, steps, started: HostInstant::now(), believed: None, doubted: None }
    }

    /// Judges a time read from a server by a request sent at `asked`. An error is the reason why the clock is
    /// not believed.
    pub(crate) fn check(&mut self, time: RegistryTime, asked: HostInstant) -> Result<(), Arc<str>> {
        let now = self.reading(time, asked);
        self.check_at(now, wall_clock())
    }

    /// Judges a time as [`check`](Self::check) does, from a clock that nobody vouches for. The first reading is
    /// believed only near `last`, the latest time in the store, or near this node's wall clock.
    pub(crate) fn check_unleased(
        &mut self,
        time: RegistryTime,
        asked: HostInstant,
        last: RegistryTime,
    ) -> Result<(), Arc<str>> {
        let now = self.reading(time, asked);
        self.check_unleased_at(now, wall_clock(), last)
    }

    /// Returns the clock's expected time at `now`, counted from the last believed reading.
    pub(crate) fn expected(&self, now: HostInstant) -> Option<RegistryTime> {
        let believed = self.believed?;
        let passed = self.monotonic(now).as_millis().saturating_sub(believed.asked.as_millis());
        Some(believed.time + Span::from_millis(passed))
    }

    fn reading(&self, time: RegistryTime, asked: HostInstant) -> ClockReading {
        ClockReading { time, asked: self.monotonic(asked), answered: self.monotonic(HostInstant::now()) }
    }

    fn monotonic(&self, at: HostInstant) -> Span {
        Span::from_millis(at.saturating_duration_since(self.started).as_millis() as u64)
    }

    fn check_unleased_at(
        &mut self,
        now: ClockReading,
        wall: Duration,
        last: RegistryTime,
    ) -> Result<(), Arc<str>> {
        let is_near = apart(now.time, wall) <= APART_MAX || apart(now.time, since_epoch(last)) <= APART_MAX;
        if self.believed.is_some() || is_near {
            return self.check_at(now, wall);
        }
        let store = self.store;
        if self.doubted.is_none() {
            tracing::error!(
                clock = %Millis(since_epoch(now.time)),
                wall_clock = %Millis(wall),
                "the clock of {store} is more than 10 minutes away from this node's and from the record: no session \
                 expires by it; check NTP on both hosts"
            );
            self.doubted = Some(now);
        }
        self.steps.is_doubted.store(true, Relaxed);
        Err("its clock is far from this node's and from the record".into())
    }

    fn check_at(&mut self, now: ClockReading, wall: Duration) -> Result<(), Arc<str>> {
        let (store, Some(believed)) = (self.store, self.believed) else {
            self.believe(now);
            return Ok(());
        };
        let ahead_ms = now.apart_from(believed);
        if ahead_ms.unsigned_abs() <= CLOCK_TOLERANCE.as_millis() {
            let is_old = now.asked.as_millis() >= believed.answered.as_millis() + CLOCK_SETTLING.as_millis();
            let is_more_exact = now.took() < believed.took();
            self.believe(if is_old || is_more_exact { now } else { believed });
            return Ok(());
        }
        if ahead_ms <= millis(STEP_DOUBTFUL) {
            self.steps.note(ahead_ms);
            tracing::error!(
                ahead_ms,
                "the clock of {store} was stepped or runs at a wrong rate: sessions expire that much earlier or later; \
                 check its host's NTP"
            );
            self.believe(now);
            return Ok(());
        }
        let runs_on =
            |since: &ClockReading| now.apart_from(*since).unsigned_abs() <= CLOCK_TOLERANCE.as_millis();
        let since = match self.doubted.filter(runs_on) {
            Some(since) => since,
            None => {
                self.steps.note(ahead_ms);
                tracing::error!(
                    ahead_ms,
                    "the clock of {store} jumped: no session expires by it until it has settled; check its host's NTP"
                );
                *self.doubted.insert(now)
            }
        };
        let ran_on_for = now.asked.as_millis().saturating_sub(since.answered.as_millis());
        if apart(now.time, wall) <= APART_MAX && ran_on_for >= SETTLES_AFTER.as_millis() {
            self.believe(now);
            return Ok(());
        }
        self.steps.is_doubted.store(true, Relaxed);
        Err(format!("its clock jumped {} s ahead", ahead_ms / 1_000).into())
    }

    fn believe(&mut self, now: ClockReading) {
        (self.believed, self.doubted) = (Some(now), None);
        self.steps.is_doubted.store(false, Relaxed);
    }
}

#[expect(clippy::disallowed_methods, reason = "the wall clock only keeps a jump from being believed")]
fn wall_clock() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn since_epoch(time: RegistryTime) -> Duration {
    Duration::from_millis(time.as_millis())
}

fn apart(time: RegistryTime, wall: Duration) -> Duration {
    wall.abs_diff(since_epoch(time))
}

/// A time for the log: seconds since 1970, with milliseconds.
struct Millis(Duration);

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0.as_secs(), self.0.subsec_millis())
    }
}

fn millis(span: Span) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
