//! All that is known of one license in a storm.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::Statistics;
use crate::answer::Renewal;
use crate::{Asked, Checker, Denial, Failure, Grant, How, Moment, Occupancy, Violations, What};

/// Checker, occupancy and statistics of one license, told of each request before it is sent and after
/// it was answered.
pub(super) struct Watch {
    ttl: Duration,
    seen: Mutex<Seen>,
}

struct Seen {
    checker: Checker,
    occupancy: Occupancy,
    statistics: Statistics,
}

impl Watch {
    pub(super) fn new(license: String, ttl: Duration) -> Self {
        let (occupancy, statistics) = (Occupancy::default(), Statistics::default());
        Self { ttl, seen: Mutex::new(Seen { checker: Checker::new(license), occupancy, statistics }) }
    }

    /// An acquire or heartbeat is about to be sent.
    pub(super) fn asking(&self, machine: &Arc<str>) {
        self.seen().occupancy.asking(machine);
    }

    pub(super) fn granted(&self, machine: &Arc<str>, grant: &Grant, asked: Asked) {
        let mut seen = self.seen();
        match grant.how {
            How::Acquired => seen.statistics.acquired += 1,
            How::Resumed => seen.statistics.resumed += 1,
        }
        seen.statistics.filled += u64::from(grant.seats_used == grant.seats_total);
        seen.checker.granted(machine, grant, asked);
        seen.occupancy.lives(machine, grant.expires_in_seconds, asked.answered);
    }

    /// A seat was granted, but its client does not know it.
    pub(super) fn granted_unheard(&self, machine: &Arc<str>, grant: &Grant, answered: Moment) {
        let mut seen = self.seen();
        seen.statistics.unheard += 1;
        seen.occupancy.lives(machine, grant.expires_in_seconds, answered);
    }

    pub(super) fn denied(&self, machine: &Arc<str>, denial: &Denial, asked: Asked) {
        let mut seen = self.seen();
        seen.statistics.denied += 1;
        seen.checker.denied(machine, denial, asked);
        seen.occupancy.unchanged(machine);
        let held_max = seen.occupancy.others_during(machine, asked);
        if held_max < denial.seats_total as usize {
            let seats_total = denial.seats_total;
            seen.checker.broken(asked.answered, What::FalseDenial { held_max, seats_total });
        }
    }

    pub(super) fn renewed(&self, machine: &Arc<str>, session: &Arc<str>, renewal: Renewal, asked: Asked) {
        let mut seen = self.seen();
        seen.statistics.renewed += 1;
        seen.checker.renewed(machine, session, renewal.expires_in_seconds, asked);
        seen.occupancy.lives(machine, renewal.expires_in_seconds, asked.answered);
    }

    /// A heartbeat was told that the session is over.
    pub(super) fn over(&self, machine: &Arc<str>, session: &Arc<str>, asked: Asked) {
        let mut seen = self.seen();
        seen.statistics.over += 1;
        seen.checker.lost(session, asked);
        seen.occupancy.unchanged(machine);
        seen.occupancy.gone(machine, asked.answered);
    }

    /// A release is about to be sent; what it returns belongs into [`released`](Self::released).
    pub(super) fn releasing(&self, session: &Arc<str>) -> Option<Moment> {
        self.seen().checker.releasing(session)
    }

    /// A release was answered, and there was something to release.
    pub(super) fn released(&self, machine: &Arc<str>, answered: Moment) {
        let mut seen = self.seen();
        seen.statistics.released += 1;
        seen.occupancy.gone(machine, answered);
    }

    /// A release was answered, and there was nothing to release.
    pub(super) fn release_missed(
        &self,
        machine: &Arc<str>,
        session: &Arc<str>,
        until: Option<Moment>,
        asked: Asked,
    ) {
        self.seen().checker.release_missed(session, until, asked);
        self.released(machine, asked.answered);
    }

    /// An acquire or heartbeat was given up, or answered in a way that says nothing of the seat.
    pub(super) fn abandoned(&self, machine: &Arc<str>, at: Moment) {
        self.seen().occupancy.abandoned(machine, self.ttl, at);
    }

    pub(super) fn unexpected(&self, status: u16) {
        self.seen().statistics.error(status.to_string());
    }

    pub(super) fn failed(&self, failure: &Failure) {
        self.seen().statistics.error(failure.as_str());
    }

    /// Counts something that is no answer.
    pub(super) fn note(&self, note: impl FnOnce(&mut Statistics)) {
        note(&mut self.seen().statistics);
    }

    /// A promise was seen broken that no single answer shows.
    pub(super) fn broken(&self, at: Moment, what: What) {
        self.seen().checker.broken(at, what);
    }

    /// When nobody can hold a seat any more, if nobody asks.
    pub(super) fn free_from(&self) -> Moment {
        self.seen().occupancy.free_from()
    }

    /// What was seen in all.
    pub(super) fn findings(&self) -> (Statistics, Violations) {
        let seen = self.seen();
        (seen.statistics.clone(), seen.checker.violations().clone())
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
