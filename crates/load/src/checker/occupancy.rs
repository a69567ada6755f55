//! The counterpart of the checker: machines that may hold a seat at all. With fewer such machines than seats,
//! a denial is false.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::{ABANDONED_WORK_MAX, RequestSpan, possibly_until};
use crate::Moment;

/// The possible holders of a license's seats, on a license without other users. A denial costs time for every
/// machine that ever asked, so the check suits licenses of few seats.
#[derive(Debug, Default)]
pub struct Occupancy {
    machines: HashMap<Arc<str>, Machine>,
}

#[derive(Debug, Default)]
struct Machine {
    in_flight: u32,
    /// The latest end of a session from an answered request.
    answered_until: Moment,
    /// The latest end of a session from an abandoned request.
    abandoned_until: Moment,
}

impl Machine {
    fn may_hold_after(&self, moment: Moment) -> bool {
        self.in_flight > 0 || self.answered_until > moment || self.abandoned_until > moment
    }
}

impl Occupancy {
    /// Notes that `machine` is about to send an acquire or a heartbeat.
    pub fn asking(&mut self, machine: &Arc<str>) {
        self.machines.entry(machine.clone()).or_default().in_flight += 1;
    }

    /// Notes the answer to that request: the session lives on for `expires_in_seconds`.
    pub fn lives(&mut self, machine: &Arc<str>, expires_in_seconds: u64, answered: Moment) {
        let machine = self.settle(machine);
        machine.answered_until = machine.answered_until.max(possibly_until(answered, expires_in_seconds));
    }

    /// Notes an answer that changed nothing.
    pub fn unchanged(&mut self, machine: &Arc<str>) {
        self.settle(machine);
    }

    /// Notes that the request was abandoned at `moment`, with an unknown outcome.
    pub fn abandoned(&mut self, machine: &Arc<str>, ttl: Duration, moment: Moment) {
        let machine = self.settle(machine);
        let until = possibly_until(moment + ABANDONED_WORK_MAX, ttl.as_secs());
        machine.abandoned_until = machine.abandoned_until.max(until);
    }

    /// Notes that the machine's session was answered as not live. The machine has asked for no other session
    /// meanwhile.
    pub fn gone(&mut self, machine: &Arc<str>, answered: Moment) {
        self.machines.entry(machine.clone()).or_default().answered_until = answered;
    }

    /// Returns the number of machines other than `machine` that may have held a seat at some time during
    /// `asked`.
    pub fn others_during(&self, machine: &Arc<str>, asked: RequestSpan) -> usize {
        let others = self.machines.iter().filter(|(other, _)| *other != machine);
        others.filter(|(_, state)| state.may_hold_after(asked.sent)).count()
    }

    /// Returns the moment from which no machine can hold a seat, if no request is in flight or follows.
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
