//! The other side of the scale: who may hold a seat at all, so that a denial can be seen to be false.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::{ABANDONED_WORK_MAX, Asked, possibly_until};
use crate::Moment;

/// All that may hold a seat of one license, if nobody else uses it. Costs time for each machine that
/// ever asked at each denial, so it is for licenses of few seats.
#[derive(Debug, Default)]
pub struct Occupancy {
    machines: HashMap<Arc<str>, Machine>,
}

#[derive(Debug, Default)]
struct Machine {
    in_flight: u32,
    /// Until when what was answered may last.
    answered_until: Moment,
    /// Until when what was abandoned may last.
    abandoned_until: Moment,
}

impl Machine {
    fn may_hold_after(&self, moment: Moment) -> bool {
        self.in_flight > 0 || self.answered_until > moment || self.abandoned_until > moment
    }
}

impl Occupancy {
    /// `machine` is about to send an acquire or a heartbeat.
    pub fn asking(&mut self, machine: &Arc<str>) {
        self.machines.entry(machine.clone()).or_default().in_flight += 1;
    }

    /// That was answered, and the session lives on for so long.
    pub fn lives(&mut self, machine: &Arc<str>, expires_in_seconds: u64, answered: Moment) {
        let machine = self.settle(machine);
        machine.answered_until = machine.answered_until.max(possibly_until(answered, expires_in_seconds));
    }

    /// That was answered, and changed nothing.
    pub fn unchanged(&mut self, machine: &Arc<str>) {
        self.settle(machine);
    }

    /// That was given up at `moment`: what comes of it is unknown.
    pub fn abandoned(&mut self, machine: &Arc<str>, ttl: Duration, moment: Moment) {
        let machine = self.settle(machine);
        let until = possibly_until(moment + ABANDONED_WORK_MAX, ttl.as_secs());
        machine.abandoned_until = machine.abandoned_until.max(until);
    }

    /// The machine's session was answered as not live any more, and it asked for no other meanwhile.
    pub fn gone(&mut self, machine: &Arc<str>, answered: Moment) {
        self.machines.entry(machine.clone()).or_default().answered_until = answered;
    }

    /// How many machines but `machine` may have held a seat at some time while it was asking.
    pub fn others_during(&self, machine: &Arc<str>, asked: Asked) -> usize {
        let others = self.machines.iter().filter(|(other, _)| *other != machine);
        others.filter(|(_, state)| state.may_hold_after(asked.sent)).count()
    }

    /// When nobody can hold a seat any more, if nothing is in flight and nobody asks.
    pub fn free_from(&self) -> Moment {
        let machines = self.machines.values();
        machines.map(|machine| machine.answered_until.max(machine.abandoned_until)).max().unwrap_or_default()
    }

    fn settle(&mut self, machine: &Arc<str>) -> &mut Machine {
        let machine = self.machines.entry(machine.clone()).or_default();
        machine.in_flight = machine.in_flight.saturating_sub(1);
        machine
    }
}
