//! The controls of the invariants: a break of each is found, and a scenario in order has none.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::driver::Poll;
use crate::exchange::Reply;

const TTL: Duration = Duration::from_secs(3);

/// A scenario in order, which began a minute ago: an acquire and two heartbeats, a loss by the deadline, a release.
struct Scenario {
    start: Instant,
    evidence: Evidence,
}

impl Scenario {
    fn new() -> Self {
        let now = Instant::now();
        let start = now.checked_sub(Duration::from_secs(60)).expect("a host that runs for a minute");
        let records = vec![
            json!({"action": "ended", "pool": "p", "holder": "m", "reason": "expired"}),
            json!({"action": "admitted", "pool": "p", "holder": "m", "limit": 1}),
        ];
        let evidence = Evidence {
            exchanges: Vec::new(),
            transcripts: vec![Transcript::default()],
            audit: Audit::from_newest_first(records),
            interval: Duration::from_secs(1),
            secrets: vec!["secret-key".to_owned()],
            now,
        };
        let mut scenario = Self { start, evidence };
        for (at, kind) in [(0, Kind::Acquire), (1000, Kind::Heartbeat), (1900, Kind::Heartbeat)] {
            scenario.exchange(at, kind, 200, None);
        }
        scenario.poll(4800, "active", true);
        scenario.poll(5000, "lost", false);
        scenario.tell(4950, "lost", Some("deadline"));
        let released = scenario.at(6000);
        scenario.transcript().released.insert("m".to_owned(), released);
        scenario
    }

    fn at(&self, milliseconds: u64) -> Instant {
        self.start + Duration::from_millis(milliseconds)
    }

    fn transcript(&mut self) -> &mut Transcript {
        &mut self.evidence.transcripts[0]
    }

    fn exchange(&mut self, at: u64, kind: Kind, status: u16, retry_after: Option<Duration>) {
        let expires_in = (status == 200).then_some(TTL);
        let reply = Some(Reply { status, retry_after, expires_in, is_delivered: true });
        let (begun, ended) = (self.at(at), Some(self.at(at + 10)));
        let machine = Some(Arc::from("m"));
        self.evidence.exchanges.push(Exchange { kind, machine, begun, ended, is_answered: true, reply });
    }

    fn poll(&mut self, at: u64, kind: &str, is_valid: bool) {
        let (asked, answered, kind) = (self.at(at), self.at(at + 5), kind.to_owned());
        self.transcript().polls.push(Poll { asked, answered, seat: "m".to_owned(), kind, is_valid });
    }

    fn tell(&mut self, at: u64, kind: &str, reason: Option<&str>) {
        let (at, kind, reason) = (self.at(at), kind.to_owned(), reason.map(str::to_owned));
        self.transcript().told.push(Told { at, seat: "m".to_owned(), kind, reason, retry: true });
    }

    /// Panics unless the scenario breaks `invariant`, and no other.
    fn breaks(&self, invariant: &str) {
        let broken = self.evidence.broken_invariants();
        let is_alone = broken.len() == 1 && broken[0].starts_with(invariant);
        assert!(is_alone, "want a break of {invariant}: {broken:#?}");
    }
}

#[test]
fn a_scenario_in_order_breaks_nothing() {
    let broken = Scenario::new().evidence.broken_invariants();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn a_seat_that_is_valid_or_active_after_its_deadline_is_found() {
    for (kind, is_valid) in [("offline", true), ("active", false)] {
        let mut scenario = Scenario::new();
        scenario.poll(4910, kind, is_valid);
        scenario.breaks("C1");
    }
}

#[test]
fn a_lost_reply_moves_no_deadline() {
    let mut scenario = Scenario::new();
    let reply = scenario.evidence.exchanges[2].reply.as_mut().expect("a reply");
    reply.is_delivered = false;
    scenario.breaks("C1");
}

#[test]
fn a_loss_before_the_deadline_or_without_a_record_is_found() {
    for (at, reason) in [(4000, "deadline"), (4000, "revoked")] {
        let mut scenario = Scenario::new();
        scenario.tell(at, "lost", Some(reason));
        scenario.transcript().told.swap(0, 1);
        scenario.tell(4940, "active", None);
        scenario.transcript().told.swap(1, 2);
        scenario.breaks("C2");
    }
}

#[test]
fn a_second_seat_of_a_machine_is_found() {
    let mut scenario = Scenario::new();
    let admitted = json!({"action": "admitted", "pool": "p", "holder": "m", "limit": 2});
    scenario.evidence.audit = Audit::from_newest_first(vec![admitted.clone(), admitted]);
    scenario.breaks("C3");
}

#[test]
fn parallel_requests_and_a_storm_and_an_early_retry_are_found() {
    let mut scenario = Scenario::new();
    scenario.evidence.exchanges[1].ended = Some(scenario.at(2200));
    scenario.breaks("C4: m has two");

    let mut scenario = Scenario::new();
    for at in 0..9 {
        scenario.exchange(2000 + at * 50, Kind::Heartbeat, 500, None);
    }
    scenario.breaks("C4: m has sent");

    // The client gave the first request of the storm up: the request before has the last end that the proxy knows.
    scenario.evidence.exchanges[3].is_answered = false;
    scenario.breaks("C4: m has sent");

    let mut scenario = Scenario::new();
    scenario.exchange(2800, Kind::Heartbeat, 503, Some(Duration::from_secs(1)));
    scenario.exchange(3700, Kind::Heartbeat, 500, None);
    scenario.breaks("C4: m tried before");
}

#[test]
fn a_try_that_arrives_late_is_no_storm() {
    // Sent right after the end of the request before, at 1,910 ms, and 600 ms on its way: the ninth try is sent in time.
    let mut scenario = Scenario::new();
    scenario.exchange(2510, Kind::Heartbeat, 500, None);
    for at in 0..7 {
        scenario.exchange(2560 + at * 50, Kind::Heartbeat, 500, None);
    }
    scenario.exchange(2911, Kind::Heartbeat, 500, None);
    let broken = scenario.evidence.broken_invariants();
    assert!(broken.is_empty(), "{broken:#?}");
    scenario.evidence.exchanges.pop();
    scenario.exchange(2909, Kind::Heartbeat, 500, None);
    scenario.breaks("C4: m has sent");
}

#[test]
fn a_request_that_is_sent_before_the_answer_is_found_without_tolerance() {
    let mut scenario = Scenario::new();
    scenario.exchange(2005, Kind::Heartbeat, 500, None);
    scenario.evidence.exchanges[2].ended = Some(scenario.at(2006));
    scenario.breaks("C4: m has two");
    // A hang-up is noticed late.
    scenario.evidence.exchanges[2].is_answered = false;
    assert!(scenario.evidence.broken_invariants().is_empty());
}

#[test]
fn a_request_after_the_release_is_found() {
    let mut scenario = Scenario::new();
    scenario.exchange(6010, Kind::Heartbeat, 410, None);
    scenario.breaks("C5");
}

#[test]
fn a_loss_that_is_told_twice_is_found() {
    let mut scenario = Scenario::new();
    scenario.tell(5500, "lost", Some("deadline"));
    scenario.breaks("C6");
}

#[test]
fn noise_and_a_secret_are_found() {
    let mut scenario = Scenario::new();
    scenario.transcript().errors = "warning: a heartbeat failed".to_owned();
    scenario.breaks("C7");

    let mut scenario = Scenario::new();
    scenario.transcript().lines.push("the key is secret-key".to_owned());
    scenario.breaks("C8");
}
