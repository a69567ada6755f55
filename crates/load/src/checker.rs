//! Checks a license's promises from the clients' side.
//!
//! A client surely holds a seat from the receipt of the grant until it sends the release or its TTL is over.
//! The TTL counts from the *sending* of the last answered renewal. Whatever the network did, the server
//! cannot have given that seat away meanwhile. More sure holders than seats, at any instant, is therefore a
//! broken promise of the server.

mod occupancy;
#[cfg(test)]
mod tests;
mod violation;
mod witness;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::{Denial, Grant, How, Moment};
pub use occupancy::Occupancy;
pub use violation::{Violation, Violations, What};
pub use witness::Witness;

/// The most by which two clocks with millisecond resolution disagree over a TTL.
const CLOCK_GRAIN: Duration = Duration::from_millis(2);

/// Two free-running clocks drift by less than one part in this number.
const CLOCK_DRIFT_DIVISOR: u32 = 1_000;

/// The longest time for which the server may still work on a request abandoned by its client.
const ABANDONED_WORK_MAX: Duration = Duration::from_secs(5);

/// The error of a denial of a full license, for older clients.
pub const ERROR_WHEN_FULL: &str = "All license seats are currently in use";

/// The interval of a request: sent, then answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestSpan {
    /// The moment of sending.
    pub sent: Moment,
    /// The moment at which the whole answer had been read.
    pub answered: Moment,
}

/// The sure holders of a license's seats, and the broken promises.
///
/// Limits may rise and fall during a run: holders are compared with the largest limit in any answer.
#[derive(Debug)]
pub struct Checker {
    license: Arc<str>,
    held: HashMap<Arc<str>, Held>,
    by_machine: HashMap<Arc<str>, Arc<str>>,
    seats_total_max: u32,
    violations: Violations,
}

#[derive(Debug)]
struct Held {
    machine: Arc<str>,
    since: Moment,
    until: Moment,
}

impl Checker {
    /// Returns a checker of a license without known holders. `license` names the license in violations.
    pub fn new(license: impl Into<Arc<str>>) -> Self {
        Self {
            license: license.into(),
            held: HashMap::new(),
            by_machine: HashMap::new(),
            seats_total_max: 0,
            violations: Violations::default(),
        }
    }

    /// Notes a granted acquire by `machine`.
    pub fn granted(&mut self, machine: &Arc<str>, grant: &Grant, asked: RequestSpan) {
        self.seats_total_max = self.seats_total_max.max(grant.seats_total);
        self.check_counts(grant, asked.answered);
        self.check_one_seat_a_machine(machine, grant, asked);
        let until = surely_until(asked.sent, grant.expires_in_seconds);
        self.hold(machine, &grant.session_id, until, asked.answered);
    }

    /// Notes a denied acquire by `machine`: the license is full.
    pub fn denied(&mut self, machine: &Arc<str>, denial: &Denial, asked: RequestSpan) {
        if !says_full_properly(denial) {
            self.broken(asked.answered, What::RefusalImproper { denial: denial.clone() });
        }
        let held = self.by_machine.get(machine).and_then(|session| self.held.get(session));
        // A concurrent grant may have been decided after the denial.
        if held.is_some_and(|held| held.since <= asked.sent && held.until > asked.answered) {
            self.broken(asked.answered, What::HolderDenied { machine: machine.clone() });
        }
    }

    /// Notes a heartbeat of `session`, held by `machine`, answered as live.
    pub fn renewed(
        &mut self,
        machine: &Arc<str>,
        session: &Arc<str>,
        expires_in_seconds: u64,
        asked: RequestSpan,
    ) {
        self.hold(machine, session, surely_until(asked.sent, expires_in_seconds), asked.answered);
    }

    /// Notes a heartbeat of `session` answered as missing, or as ended for a reason of time alone.
    pub fn lost(&mut self, session: &Arc<str>, asked: RequestSpan) {
        if let Some(held) = self.forget(session) {
            self.check_end(session, held.until, asked.answered);
        }
    }

    /// Notes that `session` is about to be released or revoked. Returns the end of its sure time. Must be
    /// called before the request is sent.
    pub fn releasing(&mut self, session: &Arc<str>) -> Option<Moment> {
        self.forget(session).map(|held| held.until)
    }

    /// Notes that the only release of a session was answered as not live. `until` is the result of
    /// [`releasing`](Self::releasing).
    pub fn release_missed(&mut self, session: &Arc<str>, until: Option<Moment>, asked: RequestSpan) {
        if let Some(until) = until {
            self.check_end(session, until, asked.answered);
        }
    }

    /// Forgets all holders and violations, and keeps the limit: for a server that has lost confirmed
    /// sessions.
    pub fn forget_all(&mut self) {
        self.held.clear();
        self.by_machine.clear();
        self.violations = Violations::default();
    }

    /// Returns the broken promises.
    pub fn violations(&self) -> &Violations {
        &self.violations
    }

    /// Adds a violation of the license found by another check.
    pub fn broken(&mut self, at: Moment, what: What) {
        self.violations.push(Violation { pool: self.license.clone(), at, what });
    }

    fn check_counts(&mut self, grant: &Grant, at: Moment) {
        let above = match grant.how {
            How::Acquired => grant.seats_used > grant.seats_total,
            // A lowered limit ends no session.
            How::Resumed => grant.seats_used > self.seats_total_max,
        };
        let remaining = grant.seats_total.saturating_sub(grant.seats_used);
        if above || grant.seats_used == 0 || grant.seats_remaining != Some(remaining) {
            let (used, total) = (grant.seats_used, grant.seats_total);
            self.broken(at, What::CountsWrong { used, remaining: grant.seats_remaining, total });
        }
    }

    fn check_one_seat_a_machine(&mut self, machine: &Arc<str>, grant: &Grant, asked: RequestSpan) {
        let Some(before) = self.by_machine.get(machine) else { return };
        let still = self.held.get(before).is_some_and(|held| held.until > asked.answered);
        if still && *before != grant.session_id {
            let sessions = [before.clone(), grant.session_id.clone()];
            self.broken(asked.answered, What::SecondSeat { machine: machine.clone(), sessions });
        }
    }

    fn check_end(&mut self, session: &Arc<str>, until: Moment, at: Moment) {
        if until > at {
            self.broken(at, What::FalseEnd { session: session.clone() });
        }
    }

    fn hold(&mut self, machine: &Arc<str>, session: &Arc<str>, until: Moment, now: Moment) {
        let held = self.held.entry(session.clone());
        let held = held.or_insert_with(|| Held { machine: machine.clone(), since: now, until });
        held.until = held.until.max(until);
        self.by_machine.insert(machine.clone(), session.clone());
        self.check_limit(now);
    }

    /// Sweeps expired holders only if there seem to be too many. The common case stays cheap, and the number
    /// of remembered holders stays below the limit.
    fn check_limit(&mut self, now: Moment) {
        if self.held.len() <= self.seats_total_max as usize {
            return;
        }
        self.held.retain(|_, held| held.until > now);
        self.by_machine.retain(|_, session| self.held.contains_key(session));
        let held = self.held.len();
        if held > self.seats_total_max as usize {
            self.broken(now, What::AboveLimit { held, seats_total: self.seats_total_max });
        }
    }

    fn forget(&mut self, session: &Arc<str>) -> Option<Held> {
        let held = self.held.remove(session)?;
        if self.by_machine.get(&held.machine) == Some(session) {
            self.by_machine.remove(&held.machine);
        }
        Some(held)
    }
}

fn says_full_properly(denial: &Denial) -> bool {
    denial.error == ERROR_WHEN_FULL
        && denial.seats_available == 0
        && denial.retry_after_header == Some(denial.retry_after_seconds)
}

/// Returns the earliest end of a session with `expires_in_seconds` left at `sent` or later, by the server's
/// answer.
fn surely_until(sent: Moment, expires_in_seconds: u64) -> Moment {
    let told = Duration::from_secs(expires_in_seconds);
    sent + told.saturating_sub(told / CLOCK_DRIFT_DIVISOR + CLOCK_GRAIN)
}

/// Returns the latest end of a session with `expires_in_seconds` left at `answered` or earlier, by the
/// server's answer.
fn possibly_until(answered: Moment, expires_in_seconds: u64) -> Moment {
    // The server rounds the time left down to whole seconds.
    let told = Duration::from_secs(expires_in_seconds.saturating_add(1));
    answered + (told + told / CLOCK_DRIFT_DIVISOR + CLOCK_GRAIN)
}
