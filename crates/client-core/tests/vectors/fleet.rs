//! Plays a fleet: many holders, one outage, and the load on the server after it.

use std::collections::BTreeMap;
use std::time::Duration;

use seatkeeper_client_core::{
    Action, Deadline, Event, Failure, Jitter, LicenseDoor, Machine, Plan, RequestId, Response,
};
use serde_json::json;

use crate::clocks::Clocks;
use crate::script::Fleet;

/// A round trip to the server of a fleet.
const ROUND_TRIP: Duration = Duration::from_millis(5);
/// Load is counted in buckets of this.
const BUCKET: Duration = Duration::from_millis(100);

/// More steps of one holder than any fleet needs: a livelock.
const STEPS_MAX: usize = 10_000;

/// The generator of jitter that `sdk/vectors/README.md` defines.
struct SplitMix64(u64);

impl SplitMix64 {
    fn draw(&mut self) -> Jitter {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Jitter::new(((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64)
    }
}

/// The requests of one holder, by the time since the beginning.
fn requests(fleet: &Fleet, number: usize) -> Vec<Duration> {
    let mut random = SplitMix64(fleet.seed.wrapping_add(number as u64));
    let mut clocks = Clocks::new();
    let plan = Plan::new(LicenseDoor::new("K", format!("m{number}")));
    let (mut machine, mut actions) = Machine::new(plan, clocks.now());
    let (from, to) = (clocks.point(fleet.outage_from), clocks.point(fleet.outage_to));
    let end = clocks.point(fleet.until);
    let mut flight: Option<(RequestId, Deadline, bool)> = None;
    let mut sent = Vec::new();
    let mut steps = 0;
    loop {
        steps += 1;
        assert!(steps < STEPS_MAX, "holder {number} goes round in circles");
        for action in actions {
            if let Action::Send(request) = action {
                assert!(flight.is_none(), "a second request in flight");
                let now = clocks.now().instant();
                sent.push(clocks.since_beginning(now));
                flight = Some((request.id, now.after(ROUND_TRIP), request.path.ends_with("acquire")));
            }
        }
        let arrival = flight.as_ref().map(|(_, arrival, _)| *arrival);
        let next = [machine.wake_at(), arrival].into_iter().flatten().min().expect("a machine that goes on");
        if next > end {
            break;
        }
        clocks.advance(next.remaining(clocks.now()));
        let event = match flight.take_if(|(_, arrival, _)| *arrival == next) {
            Some((request, ..)) if (from..to).contains(&next) => outage(fleet, request),
            Some((request, _, acquire)) => grant(fleet, request, acquire),
            None => Event::Tick,
        };
        actions = machine.step(event, clocks.now(), random.draw());
    }
    let state = machine.state(clocks.now());
    assert_eq!(state.name(), fleet.state, "holder {number}: {state:?}");
    sent
}

fn outage(fleet: &Fleet, request: RequestId) -> Event {
    match fleet.outage.as_str() {
        "refused" => Event::Failed { request, failure: Failure::Refused },
        "503" => {
            let response = Response {
                status: 503,
                retry_after: Some(Duration::from_secs(1)),
                request_id: None,
                body: Vec::new(),
            };
            Event::Answered { request, response }
        }
        other => panic!("no outage: {other}"),
    }
}

fn grant(fleet: &Fleet, request: RequestId, acquire: bool) -> Event {
    let mut json = fleet.grant.clone();
    json.insert("session_id".to_owned(), json!("0198a0aa-0000-7000-8000-000000000001"));
    let (status, body) = (if acquire { 201 } else { 200 }, serde_json::to_vec(&json).unwrap());
    Event::Answered { request, response: Response { status, retry_after: None, request_id: None, body } }
}

pub(crate) fn play(fleet: &Fleet) {
    println!("{} — seed {}", fleet.name, fleet.seed);
    let interval = Duration::from_secs(fleet.grant["heartbeat_interval_seconds"].as_u64().unwrap());
    let mut first: Vec<Duration> = Vec::new();
    for number in 0..fleet.holders {
        let sent = requests(fleet, number);
        let max = fleet.tries_per_interval_max;
        for window in sent.windows(max + 1) {
            assert!(
                window[max] - window[0] >= interval,
                "holder {number}: more than {max} tries: {window:?}"
            );
        }
        first.extend(sent.into_iter().find(|at| *at >= fleet.outage_to));
    }
    assert_eq!(first.len(), fleet.holders, "each holder comes back");
    let mut buckets = BTreeMap::<u128, usize>::new();
    for at in &first {
        *buckets.entry(at.as_millis() / BUCKET.as_millis()).or_default() += 1;
    }
    let fullest = *buckets.values().max().unwrap();
    let share = fullest as f64 / fleet.holders as f64;
    assert!(share <= fleet.bucket_share_max, "{fullest} requests within {BUCKET:?}");
    let spread = *first.iter().max().unwrap() - *first.iter().min().unwrap();
    assert!(spread >= fleet.spread_min, "spread over {spread:?} alone");
}
