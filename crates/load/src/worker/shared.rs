//! The state shared by all connections of a run.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::report::Report;
use crate::tally::Tally;
use crate::{Checker, Moment, Plan, Progress, Stopwatch, Target, Violations};

/// The number of characters of a license key to show.
const KEY_CHARS_TOLD: usize = 4;

/// The plan, the clock, the measurements, and a checker for each license.
pub(crate) struct Shared {
    plan: Plan,
    target: Arc<Target>,
    stopwatch: Stopwatch,
    /// Distinguishes the machines of this run from machines of another run on the same licenses.
    tag: u32,
    turns: AtomicU64,
    measuring_since_micros: AtomicU64,
    tally: Mutex<Tally>,
    checkers: Vec<Mutex<Checker>>,
}

impl Shared {
    pub(crate) fn new(plan: Plan) -> Self {
        let checkers = plan.license_keys.iter().map(|key| Mutex::new(Checker::new(told(key))));
        Self {
            checkers: checkers.collect(),
            target: Arc::new(plan.target.clone()),
            stopwatch: Stopwatch::start(),
            tag: rand::random(),
            turns: AtomicU64::new(0),
            measuring_since_micros: AtomicU64::new(0),
            tally: Mutex::default(),
            plan,
        }
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(super) fn target(&self) -> &Arc<Target> {
        &self.target
    }

    pub(super) fn now(&self) -> Moment {
        self.stopwatch.now()
    }

    pub(super) fn tag(&self) -> u32 {
        self.tag
    }

    pub(super) fn tally(&self) -> MutexGuard<'_, Tally> {
        locked(&self.tally)
    }

    pub(super) fn checker(&self, license: usize) -> MutexGuard<'_, Checker> {
        locked(&self.checkers[license])
    }

    pub(crate) fn start_measuring(&self) {
        let micros = self.now().into_run().as_micros() as u64;
        self.measuring_since_micros.store(micros, Ordering::Relaxed);
    }

    /// Returns whether another turn is within the bounds, and takes that turn.
    pub(super) fn takes_turn(&self) -> bool {
        let bounds = &self.plan.bounds;
        let turn = self.turns.fetch_add(1, Ordering::Relaxed);
        bounds.turns.is_none_or(|turns_max| turn < turns_max) && self.measured() < bounds.duration
    }

    pub(crate) fn progress(&self) -> Progress {
        let tally = self.tally();
        Progress {
            elapsed: self.measured(),
            requests: tally.requests,
            errors: tally.errors_total(),
            violations: self.checkers.iter().map(|checker| locked(checker).violations().count()).sum(),
        }
    }

    pub(crate) fn report(&self) -> Report {
        let mut violations = Violations::default();
        for checker in &self.checkers {
            violations.extend(locked(checker).violations());
        }
        let scenario = self.plan.scenario.as_str();
        Report::new(scenario, self.plan.concurrency, self.measured(), &self.tally(), &violations)
    }

    fn measured(&self) -> Duration {
        let since = Duration::from_micros(self.measuring_since_micros.load(Ordering::Relaxed));
        self.now().into_run().saturating_sub(since)
    }
}

/// Locks `what`, poisoned or not. A worker's panic is reported elsewhere, and no code panics while it changes
/// the state.
fn locked<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

fn told(key: &str) -> Arc<str> {
    let hidden = key.chars().count().saturating_sub(KEY_CHARS_TOLD);
    format!("…{}", key.chars().skip(hidden).collect::<String>()).into()
}
