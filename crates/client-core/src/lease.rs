//! A seat as granted by the server, and the seat's deadline.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

use crate::retry::Jitter;
use crate::time::{Deadline, Now};

/// The vendor's policy for a session that expired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reacquire {
    /// The client acquires again by itself after `expired`.
    #[default]
    ExpiredOnly,
    /// Only the program acquires again. Unknown policies of a newer server are read as `Never`.
    #[serde(other)]
    Never,
}

/// The code that releases a session without a token. `Debug` hides the code.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct ReleaseCode(Box<str>);

impl ReleaseCode {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ReleaseCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReleaseCode(..)")
    }
}

/// A session of the holder, with the means to end it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeldSession {
    /// Shared with everyone who names the session: one copy for each seat.
    pub id: Arc<str>,
    pub code: Option<ReleaseCode>,
}

/// A granted acquire.
#[derive(Debug)]
pub(crate) struct Grant {
    pub session: HeldSession,
    pub license_id: Option<Arc<str>>,
    pub seats: Option<(u32, u32)>,
    pub expires_in: Duration,
    pub interval: Option<Duration>,
    pub grace: Duration,
    pub reacquire: Reacquire,
}

/// An answered heartbeat; absent fields keep their last value.
#[derive(Debug, Default)]
pub(crate) struct Renewal {
    pub expires_in: Option<Duration>,
    pub interval: Option<Duration>,
    pub grace: Option<Duration>,
    pub reacquire: Option<Reacquire>,
}

/// The session of a seat, with the terms of the last answer.
#[derive(Clone, Debug)]
pub(crate) struct Lease {
    pub session: HeldSession,
    pub license_id: Option<Arc<str>>,
    pub seats: Option<(u32, u32)>,
    pub until: Deadline,
    pub ttl: Duration,
    pub interval: Duration,
    pub grace: Duration,
    pub reacquire: Reacquire,
}

/// The longest grace: a week.
pub(crate) const GRACE_MAX: Duration = Duration::from_secs(604_800);

/// The shortest interval of heartbeats, even if a server asks for a shorter interval.
const INTERVAL_MIN: Duration = Duration::from_secs(1);

/// The interval told, if it leaves room for a heartbeat before the TTL; else a third of the TTL.
fn interval(told: Option<Duration>, ttl: Duration) -> Duration {
    told.filter(|told| *told < ttl).unwrap_or(ttl / 3).max(INTERVAL_MIN)
}

impl Lease {
    /// Returns the lease of a grant whose request was sent at `sent`.
    pub(crate) fn new(grant: Grant, sent: Deadline) -> Self {
        Self {
            session: grant.session,
            license_id: grant.license_id,
            seats: grant.seats,
            until: sent.after(grant.expires_in),
            ttl: grant.expires_in,
            interval: interval(grant.interval, grant.expires_in),
            grace: grant.grace,
            reacquire: grant.reacquire,
        }
    }

    /// Returns the lease of a session whose terms are unknown, as if its deadline had just passed. Only a heartbeat may renew
    /// the session: its answer tells the terms.
    pub(crate) fn resumed(session: Arc<str>, now: Deadline) -> Self {
        /// Short, because the session may be near its end.
        const INTERVAL: Duration = Duration::from_secs(30);
        Self {
            session: HeldSession { id: session, code: None },
            license_id: None,
            seats: None,
            until: now,
            ttl: INTERVAL,
            interval: INTERVAL,
            grace: Duration::ZERO,
            reacquire: Reacquire::Never,
        }
    }

    /// Counts the TTL anew from `sent`. Requests are sent one after the other, so `sent` never goes back.
    pub(crate) fn renew(&mut self, renewal: &Renewal, sent: Deadline) {
        self.ttl = renewal.expires_in.unwrap_or(self.ttl);
        self.until = sent.after(self.ttl);
        let known = self.interval.min((self.ttl / 3).max(INTERVAL_MIN));
        self.interval = interval(renewal.interval.or(Some(known)), self.ttl);
        self.grace = renewal.grace.unwrap_or(self.grace);
        self.reacquire = renewal.reacquire.unwrap_or(self.reacquire);
    }

    /// The first heartbeat, at 0.3 to 1.0 of the interval: fleets started together drift apart.
    pub(crate) fn first_beat(&self, sent: Deadline, jitter: Jitter) -> Deadline {
        sent.after(self.interval.mul_f64(jitter.between(0.3, 1.0)))
    }

    /// A later heartbeat, at 0.9 to 1.0 of the interval.
    pub(crate) fn next_beat(&self, sent: Deadline, jitter: Jitter) -> Deadline {
        sent.after(self.interval.mul_f64(jitter.between(0.9, 1.0)))
    }

    /// The timeout of a heartbeat: a third of the interval, at most 10 s.
    pub(crate) fn timeout(&self) -> Duration {
        const TIMEOUT_MAX: Duration = Duration::from_secs(10);
        (self.interval / 3).min(TIMEOUT_MAX)
    }

    pub(crate) fn has_passed(&self, now: Now) -> bool {
        self.until.has_passed(now)
    }
}
