//! The invariants of clients, checked from outside after a scenario.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use crate::audit::Audit;
use crate::driver::{Told, Transcript};
use crate::exchange::{Exchange, Kind};

/// The most tries of a seat that are sent in any span of one interval.
const TRIES_MAX: usize = 8;

/// The time between the hang-up of a client and its notice by the proxy, on a busy host.
const NOTICE: Duration = Duration::from_millis(250);

/// The evidence of a scenario.
#[derive(Debug)]
pub struct Evidence {
    /// The requests that the proxy saw.
    pub exchanges: Vec<Exchange>,
    /// The lines of each driver.
    pub transcripts: Vec<Transcript>,
    /// The audit log.
    pub audit: Audit,
    /// The interval between two heartbeats.
    pub interval: Duration,
    /// Texts that no driver may print.
    pub secrets: Vec<String>,
    /// The end of the scenario.
    pub now: Instant,
}

impl Evidence {
    /// Returns every break of an invariant.
    #[must_use]
    pub fn broken_invariants(&self) -> Vec<String> {
        let mut broken = Vec::new();
        for transcript in &self.transcripts {
            broken.extend(self.valid_after_deadline(transcript));
            broken.extend(self.false_losses(transcript));
            broken.extend(self.requests_after_release(transcript));
            broken.extend(losses_told_twice(transcript));
            broken.extend(self.noise(transcript));
        }
        broken.extend(self.audit.broken_promises().into_iter().map(|promise| format!("C3: {promise}")));
        for (machine, requests) in self.requests_by_machine() {
            broken.extend(self.parallel_requests(machine, &requests));
            broken.extend(self.too_many_tries(machine, &requests));
            broken.extend(early_retries(machine, &requests));
        }
        broken
    }

    /// Returns the latest deadline that `machine` may know at `at`.
    fn deadline(&self, machine: &str, at: Instant) -> Option<Instant> {
        let known = self.exchanges.iter().filter(|exchange| exchange.begun <= at);
        known
            .filter(|exchange| exchange.machine.as_deref() == Some(machine))
            .filter_map(Exchange::deadline)
            .max()
    }

    /// C1: no seat is valid or active after its deadline.
    fn valid_after_deadline(&self, transcript: &Transcript) -> Option<String> {
        let late = transcript.polls.iter().find(|poll| {
            let holds = poll.is_valid || poll.kind == "active";
            holds && self.deadline(&poll.seat, poll.answered).is_none_or(|deadline| poll.asked > deadline)
        })?;
        Some(format!("C1: {} is {} (valid: {}) after its deadline", late.seat, late.kind, late.is_valid))
    }

    /// C2: a loss by the deadline comes after the deadline, and any other loss has a record with its reason.
    fn false_losses(&self, transcript: &Transcript) -> Vec<String> {
        let losses = transcript.told.iter().filter(|told| told.kind == "lost");
        let is_false = |told: &&Told| match told.reason.as_deref() {
            Some("deadline") => {
                self.deadline(&told.seat, told.at).is_some_and(|deadline| told.at + NOTICE < deadline)
            }
            Some(reason) => !self.audit.end_reasons(&told.seat).contains(&reason),
            None => true,
        };
        losses.filter(is_false).map(|told| format!("C2: a false loss: {told:?}")).collect()
    }

    /// C5: nothing is sent for a seat after its release.
    fn requests_after_release(&self, transcript: &Transcript) -> Vec<String> {
        let late = |(machine, released): (&String, &Instant)| {
            let late = self.exchanges.iter().find(|exchange| {
                exchange.machine.as_deref() == Some(machine) && exchange.begun > *released
            })?;
            let after = late.begun.duration_since(*released);
            Some(format!("C5: a request of {machine}, {:?}, {after:?} after its release", late.kind))
        };
        transcript.released.iter().filter_map(late).collect()
    }

    /// C7, C8: a client prints nothing, and no line of its driver has a secret.
    fn noise(&self, transcript: &Transcript) -> Vec<String> {
        let mut broken = Vec::new();
        if !transcript.errors.is_empty() {
            broken.push(format!("C7: the client printed: {}", transcript.errors));
        }
        let has_secret = |line: &&String| self.secrets.iter().any(|secret| line.contains(secret.as_str()));
        broken.extend(transcript.lines.iter().find(has_secret).map(|line| format!("C8: a secret in {line}")));
        broken
    }

    /// Returns the requests that move the state of a seat, by machine.
    fn requests_by_machine(&self) -> BTreeMap<&str, Vec<&Exchange>> {
        let mut machines: BTreeMap<&str, Vec<&Exchange>> = BTreeMap::new();
        for exchange in &self.exchanges {
            if let (Kind::Acquire | Kind::Heartbeat | Kind::Release, Some(machine)) =
                (exchange.kind, exchange.machine.as_deref())
            {
                machines.entry(machine).or_default().push(exchange);
            }
        }
        machines
    }

    /// C4: a seat has one request in flight at most.
    fn parallel_requests(&self, machine: &str, requests: &[&Exchange]) -> Option<String> {
        let is_parallel = |pair: &&[&Exchange]| {
            let notice = if pair[0].is_answered { Duration::ZERO } else { NOTICE };
            pair[1].begun + notice < pair[0].ended.unwrap_or(self.now)
        };
        let pair = requests.windows(2).find(is_parallel)?;
        Some(format!("C4: {machine} has two requests in flight: {:?} and {:?}", pair[0], pair[1]))
    }

    /// C4: a seat tries at most eight times in an interval.
    ///
    /// A client counts the times of sending, and the proxy sees arrivals: a try that waits long for a processor shortens the
    /// span between the arrivals, so their number proves nothing. A span is too short if even the earliest time in which its
    /// first try can have been sent is less than an interval before the arrival of its ninth.
    fn too_many_tries(&self, machine: &str, requests: &[&Exchange]) -> Option<String> {
        let tries: Vec<_> = requests
            .iter()
            .zip(earliest_sends(requests))
            .filter(|(exchange, _)| exchange.kind != Kind::Release)
            .collect();
        let span = tries.windows(TRIES_MAX + 1).find(|span| {
            let (earliest, ninth) = (span[0].1, span[TRIES_MAX].0.begun);
            earliest.is_some_and(|earliest| ninth < earliest + self.interval)
        })?;
        let spread = span[TRIES_MAX].0.begun - span[0].0.begun;
        Some(format!("C4: {machine} has sent {} requests in {spread:?}, within an interval", span.len()))
    }
}

/// Returns the time before which a client cannot have sent each request of a seat: the end of the request before, since a seat
/// has one request in flight at most. A request that its client gave up tells no end. `None` for the first request.
fn earliest_sends(requests: &[&Exchange]) -> Vec<Option<Instant>> {
    let mut earliest = None;
    let mut sends = Vec::with_capacity(requests.len());
    for exchange in requests {
        sends.push(earliest);
        earliest = exchange.ended.filter(|_| exchange.is_answered).or(earliest);
    }
    sends
}

/// C4: no try comes before `Retry-After` is over.
fn early_retries(machine: &str, requests: &[&Exchange]) -> Option<String> {
    let is_early = |pair: &&[&Exchange]| {
        let Some(reply) = pair[0].reply.as_ref().filter(|reply| matches!(reply.status, 429 | 503)) else {
            return false;
        };
        let (Some(wait), Some(ended)) = (reply.retry_after, pair[0].ended) else { return false };
        reply.is_delivered && pair[1].kind != Kind::Release && pair[1].begun < ended + wait
    };
    let pair = requests.windows(2).find(is_early)?;
    Some(format!("C4: {machine} tried before Retry-After was over: {:?} and {:?}", pair[0], pair[1]))
}

/// C6: a loss is told once. A loss after which the client gives up its tries is told anew.
fn losses_told_twice(transcript: &Transcript) -> Vec<String> {
    let mut last: HashMap<&str, &Told> = HashMap::new();
    let mut broken = Vec::new();
    for told in &transcript.told {
        let before = last.insert(&told.seat, told);
        let is_repeated = before.is_some_and(|before| before.kind == "lost" && before.retry == told.retry);
        if told.kind == "lost" && is_repeated {
            broken.push(format!("C6: a second loss in a row: {told:?}"));
        }
    }
    broken
}

#[cfg(test)]
mod tests;
