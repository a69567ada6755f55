//! The combined checks of a pool in a storm. Every request of every client is reported before and after it,
//! so that a violation is found by at least one check.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use seatkeeper_load::{
    Checker, Denial, Failure, Grant, How, Moment, Occupancy, Renewal, RequestSpan, Violations, What, Witness,
};

use super::Statistics;

/// Witness, checker, occupancy and statistics of a pool. Clients report each request before it is sent and
/// after it is answered.
pub(super) struct Watch {
    ttl: Duration,
    seen: Mutex<Observations>,
}

struct Observations {
    witness: Witness,
    /// `None` for a pool with evictions.
    checker: Option<Checker>,
    occupancy: Occupancy,
    statistics: Statistics,
    /// The holder and the session of the latest grant.
    latest: Option<(Arc<str>, Arc<str>)>,
}

impl Watch {
    pub(super) fn new(pool: String, ttl: Duration, keeps_sessions: bool) -> Self {
        let pool: Arc<str> = pool.into();
        let seen = Observations {
            witness: Witness::new(pool.clone()),
            checker: keeps_sessions.then(|| Checker::new(pool)),
            occupancy: Occupancy::default(),
            statistics: Statistics::default(),
            latest: None,
        };
        Self { ttl, seen: Mutex::new(seen) }
    }

    /// Notes that an acquire or heartbeat is about to be sent.
    pub(super) fn asking(&self, machine: &Arc<str>) {
        self.seen().occupancy.asking(machine);
    }

    /// Notes a granted claim. `replaced` is the session named by the claim, if any.
    pub(super) fn granted(
        &self,
        machine: &Arc<str>,
        grant: &Grant,
        replaced: Option<&Arc<str>>,
        asked: RequestSpan,
    ) {
        let mut seen = self.seen();
        let seen = &mut *seen;
        match grant.how {
            How::Acquired => seen.statistics.acquired += 1,
            How::Resumed => seen.statistics.resumed += 1,
        }
        seen.statistics.filled += u64::from(grant.seats_used == grant.seats_total);
        seen.statistics.evicted += grant.evicted.len() as u64;
        seen.witness.granted(machine, grant, replaced, asked);
        if let Some(checker) = &mut seen.checker {
            checker.granted(machine, grant, asked);
        }
        seen.latest = Some((machine.clone(), grant.session_id.clone()));
        seen.occupancy.lives(machine, grant.expires_in_seconds, asked.answered);
    }

    /// Notes a granted seat whose client ignores the answer.
    pub(super) fn granted_unheard(&self, machine: &Arc<str>, grant: &Grant, asked: RequestSpan) {
        let mut seen = self.seen();
        seen.statistics.unheard += 1;
        seen.statistics.evicted += grant.evicted.len() as u64;
        seen.witness.granted(machine, grant, None, asked);
        seen.occupancy.lives(machine, grant.expires_in_seconds, asked.answered);
    }

    pub(super) fn denied(&self, machine: &Arc<str>, denial: &Denial, asked: RequestSpan) {
        let mut seen = self.seen();
        let seen = &mut *seen;
        seen.statistics.denied += 1;
        seen.witness.denied(machine, asked);
        if let Some(checker) = &mut seen.checker {
            checker.denied(machine, denial, asked);
        }
        seen.occupancy.unchanged(machine);
        let held_max = seen.occupancy.others_during(machine, asked);
        if held_max < denial.seats_total as usize {
            let seats_total = denial.seats_total;
            seen.witness.broken(asked.answered, What::FalseDenial { held_max, seats_total });
        }
    }

    /// Notes a heartbeat answered as live. `renewal` has the time left, if the API tells it.
    pub(super) fn renewed(
        &self,
        machine: &Arc<str>,
        session: &Arc<str>,
        renewal: Option<Renewal>,
        asked: RequestSpan,
    ) {
        let mut seen = self.seen();
        let expires_in = renewal.map_or(self.ttl.as_secs(), |renewal| renewal.expires_in_seconds);
        seen.statistics.renewed += 1;
        seen.witness.renewed(machine, session, expires_in, asked);
        if let Some(checker) = &mut seen.checker {
            checker.renewed(machine, session, expires_in, asked);
        }
        seen.occupancy.lives(machine, expires_in, asked.answered);
    }

    /// Notes a heartbeat answered as over, with the reason if the API gives one.
    pub(super) fn over(
        &self,
        machine: &Arc<str>,
        session: &Arc<str>,
        reason: Option<&str>,
        asked: RequestSpan,
    ) {
        let mut seen = self.seen();
        let seen = &mut *seen;
        seen.statistics.over += 1;
        seen.witness.over(session, reason, asked);
        seen.occupancy.unchanged(machine);
        // A device may hold a later session without knowing it.
        if let Some(checker) = &mut seen.checker {
            checker.lost(session, asked);
            seen.occupancy.gone(machine, asked.answered);
        }
    }

    /// Notes that a release is about to be sent. The result is an argument of
    /// [`release_missed`](Self::release_missed).
    pub(super) fn releasing(&self, session: &Arc<str>) -> Option<Moment> {
        self.seen().checker.as_mut()?.releasing(session)
    }

    /// Notes a release that ended a live session.
    pub(super) fn released(&self, machine: &Arc<str>, session: &Arc<str>, asked: RequestSpan) {
        let mut seen = self.seen();
        seen.statistics.released += 1;
        seen.witness.ended(session, asked);
        seen.occupancy.gone(machine, asked.answered);
    }

    /// Notes a release that found no live session.
    pub(super) fn release_missed(
        &self,
        machine: &Arc<str>,
        session: &Arc<str>,
        until: Option<Moment>,
        asked: RequestSpan,
    ) {
        let mut seen = self.seen();
        let seen = &mut *seen;
        seen.statistics.released += 1;
        seen.witness.over(session, None, asked);
        if let Some(checker) = &mut seen.checker {
            checker.release_missed(session, until, asked);
            seen.occupancy.gone(machine, asked.answered);
        }
    }

    /// Returns the session of the latest grant, if another machine holds it.
    pub(super) fn anothers(&self, machine: &Arc<str>) -> Option<Arc<str>> {
        let seen = self.seen();
        let (_, session) = seen.latest.as_ref().filter(|(holder, _)| holder != machine)?;
        Some(session.clone())
    }

    /// Notes an acquire or heartbeat that was abandoned, or answered without telling about the seat.
    pub(super) fn abandoned(&self, machine: &Arc<str>, asked: RequestSpan) {
        let mut seen = self.seen();
        seen.witness.abandoned(machine, asked);
        seen.occupancy.abandoned(machine, self.ttl, asked.answered);
    }

    pub(super) fn unexpected(&self, status: u16) {
        self.seen().statistics.error(status.to_string());
    }

    pub(super) fn failed(&self, failure: &Failure) {
        self.seen().statistics.error(failure.as_str());
    }

    /// Counts an event without an answer.
    pub(super) fn note(&self, note: impl FnOnce(&mut Statistics)) {
        note(&mut self.seen().statistics);
    }

    /// Adds a violation not visible in a single answer.
    pub(super) fn broken(&self, at: Moment, what: What) {
        self.seen().witness.broken(at, what);
    }

    /// Returns the moment from which no machine can hold a seat, if no request follows.
    pub(super) fn free_from(&self) -> Moment {
        self.seen().occupancy.free_from()
    }

    /// Returns the number of denied claims.
    pub(super) fn denials(&self) -> u64 {
        self.seen().statistics.denied
    }

    /// Returns the counts, and the violations found by every check.
    pub(super) fn findings(&self) -> (Statistics, Violations) {
        let seen = self.seen();
        let mut violations = seen.witness.clone().verdict();
        if let Some(checker) = &seen.checker {
            violations.extend(checker.violations());
        }
        (seen.statistics.clone(), violations)
    }

    fn seen(&self) -> MutexGuard<'_, Observations> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
