//! Watches one license from its clients' side.
//!
//! A client knows for sure that it holds a seat from the receipt of the grant until it sends the
//! release, or until the TTL it was told is over, counted from when it *sent* its last renewal that was
//! answered. Whatever the network did, the server cannot have given that seat away meanwhile; so more
//! sure holders than seats, at any instant, is a broken promise of the server's.

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

/// What two clocks that count whole milliseconds can disagree by over one TTL.
const CLOCK_GRAIN: Duration = Duration::from_millis(2);

/// Two clocks that nobody sets run apart by less than one part in this many.
const CLOCK_DRIFT_DIVISOR: u32 = 1_000;

/// How long a request that its client gave up may still be at work in the server.
const ABANDONED_WORK_MAX: Duration = Duration::from_secs(5);

const ERROR_WHEN_FULL: &str = "All license seats are currently in use";

/// When a request was sent, and when its answer was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// When it was sent.
    pub sent: Moment,
    /// When its answer had been read.
    pub answered: Moment,
}

/// The sure holders of one license's seats, and the promises that were seen broken.
///
/// Limits may rise and fall meanwhile: what is held is measured by the largest that was answered.
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
    /// A checker of a license that nobody is known to hold. `license` names it in violations.
    pub fn new(license: impl Into<Arc<str>>) -> Self {
        Self {
            license: license.into(),
            held: HashMap::new(),
            by_machine: HashMap::new(),
            seats_total_max: 0,
            violations: Violations::default(),
        }
    }

    /// An acquire by `machine` was granted.
    pub fn granted(&mut self, machine: &Arc<str>, grant: &Grant, asked: Asked) {
        self.seats_total_max = self.seats_total_max.max(grant.seats_total);
        self.check_counts(grant, asked.answered);
        self.check_one_seat_a_machine(machine, grant, asked);
        let until = surely_until(asked.sent, grant.expires_in_seconds);
        self.hold(machine, &grant.session_id, until, asked.answered);
    }

    /// An acquire by `machine` was denied, for the license is full.
    pub fn denied(&mut self, machine: &Arc<str>, denial: &Denial, asked: Asked) {
        if !says_full_properly(denial) {
            self.broken(asked.answered, What::RefusalImproper { denial: denial.clone() });
        }
        let held = self.by_machine.get(machine).and_then(|session| self.held.get(session));
        // A grant that came meanwhile may have been decided after the denial.
        if held.is_some_and(|held| held.since <= asked.sent && held.until > asked.answered) {
            self.broken(asked.answered, What::HolderDenied { machine: machine.clone() });
        }
    }

    /// A heartbeat of `session`, held by `machine`, was answered as live.
    pub fn renewed(&mut self, machine: &Arc<str>, session: &Arc<str>, expires_in_seconds: u64, asked: Asked) {
        self.hold(machine, session, surely_until(asked.sent, expires_in_seconds), asked.answered);
    }

    /// A heartbeat of `session` was answered as ended, for a reason that lies with time alone, or as missing.
    pub fn lost(&mut self, session: &Arc<str>, asked: Asked) {
        if let Some(held) = self.forget(session) {
            self.check_end(session, held.until, asked.answered);
        }
    }

    /// `session` is about to be released, or revoked: until when it would surely have been held.
    /// To be called before the request is sent.
    pub fn releasing(&mut self, session: &Arc<str>) -> Option<Moment> {
        self.forget(session).map(|held| held.until)
    }

    /// The only release of a session was answered as not live; `until` is what
    /// [`releasing`](Self::releasing) said.
    pub fn release_missed(&mut self, session: &Arc<str>, until: Option<Moment>, asked: Asked) {
        if let Some(until) = until {
            self.check_end(session, until, asked.answered);
        }
    }

    /// Forgets all holders and violations, and keeps the limit: the server has lost confirmed sessions.
    pub fn forget_all(&mut self) {
        self.held.clear();
        self.by_machine.clear();
        self.violations = Violations::default();
    }

    /// The promises that were seen broken.
    pub fn violations(&self) -> &Violations {
        &self.violations
    }

    /// Adds a violation that was seen elsewhere to this license's.
    pub fn broken(&mut self, at: Moment, what: What) {
        self.violations.push(Violation { pool: self.license.clone(), at, what });
    }

    fn check_counts(&mut self, grant: &Grant, at: Moment) {
        let above = match grant.how {
            How::Acquired => grant.seats_used > grant.seats_total,
            // A limit that was lowered ends nobody.
            How::Resumed => grant.seats_used > self.seats_total_max,
        };
        let remaining = grant.seats_total.saturating_sub(grant.seats_used);
        if above || grant.seats_used == 0 || grant.seats_remaining != Some(remaining) {
            let (used, total) = (grant.seats_used, grant.seats_total);
            self.broken(at, What::CountsWrong { used, remaining: grant.seats_remaining, total });
        }
    }

    fn check_one_seat_a_machine(&mut self, machine: &Arc<str>, grant: &Grant, asked: Asked) {
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

    /// Nothing is swept before there seem to be too many: that keeps the usual case cheap, and the
    /// number that is remembered below the limit.
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

/// The earliest end of a session of which, `sent` or later, the server said that so much was left.
fn surely_until(sent: Moment, expires_in_seconds: u64) -> Moment {
    let told = Duration::from_secs(expires_in_seconds);
    sent + told.saturating_sub(told / CLOCK_DRIFT_DIVISOR + CLOCK_GRAIN)
}

/// The latest end of a session of which, `answered` or earlier, the server said that so much was left.
fn possibly_until(answered: Moment, expires_in_seconds: u64) -> Moment {
    // What was told is rounded down to whole seconds.
    let told = Duration::from_secs(expires_in_seconds.saturating_add(1));
    answered + (told + told / CLOCK_DRIFT_DIVISOR + CLOCK_GRAIN)
}
