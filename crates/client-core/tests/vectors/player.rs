//! Plays a vector: a machine, its clocks, and the requests in flight.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use seatkeeper_client_core::{
    Action, Deadline, DeviceDoor, DeviceType, Door, Event, Failure, Finish, Jitter, LicenseDoor, LossReason,
    Machine, Method, Plan, Request, RequestId, Response, SessionEnd, State, Wait,
};
use serde_json::{Map, Value, json};

use crate::clocks::Clocks;
use crate::script::{
    Answer, Expect, Given, GivenDevice, GivenWait, Jitters, Notice, Vector, Verb, parse_span,
};

/// More steps at one instant are a livelock.
const STEPS_AT_ONCE_MAX: usize = 100;

/// A request in flight.
struct Flight {
    id: RequestId,
    times_out: Deadline,
}

struct Player<'a> {
    machine: Machine,
    clocks: Clocks,
    is_device: bool,
    jitters: &'a Jitters,
    steps: usize,
    /// Requests not matched by an `expect` yet, each with its send time.
    sent: VecDeque<(Request, Duration)>,
    flight: Option<Flight>,
    expected: Option<RequestId>,
    cancelled: Vec<RequestId>,
    refresh_asked: bool,
    told: Vec<String>,
    finish: Option<Finish>,
}

pub(crate) fn play(vector: &Vector) {
    let clocks = Clocks::new();
    let (machine, actions) = Machine::new(plan(&vector.given), clocks.now());
    let mut player = Player {
        machine,
        clocks,
        is_device: vector.given.device.is_some(),
        jitters: &vector.jitter,
        steps: 0,
        sent: VecDeque::new(),
        flight: None,
        expected: None,
        cancelled: Vec::new(),
        refresh_asked: false,
        told: Vec::new(),
        finish: None,
    };
    player.carry_out(actions);
    for (number, verb) in vector.steps.iter().enumerate() {
        // The last line before a panic names the step.
        println!("{} — step {}", vector.name, number + 1);
        player.play(verb);
    }
    assert!(player.sent.is_empty(), "requests that nobody expects: {:?}", player.sent);
}

fn plan(given: &Given) -> Plan {
    Plan {
        wait: match given.wait {
            None => Wait::No,
            Some(GivenWait::For(span)) => Wait::For(span),
            Some(GivenWait::Forever) => Wait::Forever,
        },
        patience: given.patience,
        ..Plan::new(given.device.as_ref().map_or_else(|| license(given).into(), device))
    }
}

fn device(given: &GivenDevice) -> Door {
    let session = |text: &Option<String>| text.as_deref().map(|text| id(text).into());
    DeviceDoor {
        device_name: given.device_name.as_deref().map(Into::into),
        session_id: session(&given.session_id),
        replace_session_id: session(&given.replace_session_id),
        ..DeviceDoor::new(
            given.device_id.as_str(),
            DeviceType::from_name(&given.device_type).expect("a type"),
        )
    }
    .into()
}

fn license(given: &Given) -> LicenseDoor {
    LicenseDoor {
        instance_id: given.instance_id.as_deref().map(Into::into),
        user_agent: given.user_agent.as_deref().map(Into::into),
        metadata: given.metadata.clone().map(Box::new),
        client: given.client.clone().map(Arc::new),
        ..LicenseDoor::new(given.license_key.as_str(), given.machine_id.as_str())
    }
}

impl Player<'_> {
    fn play(&mut self, verb: &Verb) {
        match verb {
            Verb::Acquired(fields) => self.acquired(fields),
            Verb::Beat(fields) => self.beat(fields),
            Verb::Expect(expect) => self.expect(expect),
            Verb::Answer(answer) => self.answer(answer),
            Verb::Fail(kind) => self.fail(failure(kind)),
            Verb::Cancelled(is) => {
                let expected = self.expected.expect("an expected request");
                assert_eq!(self.cancelled.contains(&expected), *is, "cancelled");
            }
            Verb::Advance(span) => self.advance(*span),
            Verb::Sleep(span) => {
                self.clocks.sleep(*span);
                self.step(Event::Tick);
            }
            Verb::Freeze(span) => {
                self.clocks.advance(*span);
                self.step(Event::Tick);
            }
            Verb::Wall(jump) => {
                let (span, back) = (jump.trim_start_matches(['+', '-']), jump.starts_with('-'));
                self.clocks.jump(parse_span(span), back);
                self.step(Event::Tick);
            }
            Verb::Event(notice) => self.step(event(notice)),
            Verb::Call(call) => self.call(call),
            Verb::Token(token) => self.token(token),
            Verb::State(wanted) => self.state(wanted),
            Verb::NoRequestFor(span) => {
                assert!(self.sent.is_empty(), "requests before: {:?}", self.sent);
                self.advance(*span);
                assert!(self.sent.is_empty(), "requests: {:?}", self.sent);
            }
            Verb::Callback(wanted) => assert_eq!(&std::mem::take(&mut self.told), wanted, "told"),
            Verb::Finish(wanted) => {
                let finish = self.finish.take().map(|finish| match finish {
                    Finish::GivenBack => "given-back",
                    Finish::Unconfirmed => "unconfirmed",
                });
                assert_eq!(finish, Some(wanted.as_str()), "finish");
            }
            Verb::Session(wanted) => {
                let session = self.machine.session().expect("a session");
                assert_eq!(**session, *id(&wanted.id));
                let license = self.machine.license_id().map(|id| &**id);
                assert_eq!(license, wanted.license_id.as_deref(), "license");
                assert_eq!(self.machine.seats(), wanted.seats, "seats");
                assert_eq!(self.machine.plan().door.events_path(session), id(&wanted.events));
            }
        }
    }

    fn acquired(&mut self, fields: &Map<String, Value>) {
        let mut json = json!({
            "session_id": "$S", "expires_in_seconds": 360, "heartbeat_interval_seconds": 120, "status": "acquired",
        });
        json.as_object_mut().unwrap().extend(fields.clone());
        let path = if self.is_device { "/api/v1/devices/sessions" } else { "/api/v1/licenses/acquire" };
        self.expect(&expect("POST", path));
        self.answer(&Answer { status: 201, retry_after: None, json: Some(json), text: None });
    }

    fn beat(&mut self, fields: &Map<String, Value>) {
        if self.is_device {
            assert!(fields.is_empty(), "a device's heartbeat is answered 204");
            let json = Some(json!({ "session_id": "$S" }));
            self.expect(&Expect { json, ..expect("POST", "/api/v1/devices/sessions/heartbeat") });
            self.answer(&Answer { status: 204, retry_after: None, json: None, text: None });
            return;
        }
        let mut json = json!({ "expires_in_seconds": 360 });
        json.as_object_mut().unwrap().extend(fields.clone());
        self.expect(&expect("PATCH", "/api/v1/licenses/sessions/$S/heartbeat"));
        self.answer(&Answer { status: 200, retry_after: None, json: Some(json), text: None });
    }

    fn expect(&mut self, expect: &Expect) {
        let Some((request, sent)) = self.sent.pop_front() else { panic!("no request is sent") };
        assert_eq!(request.method.as_str(), expect.method);
        assert_eq!(request.path, id(&expect.path));
        match &expect.json {
            Some(json) => assert_eq!(request.body, serde_json::from_str(&id(&json.to_string())).unwrap()),
            None => assert_eq!(request.body.is_some(), request.method == Method::Post, "{:?}", request.body),
        }
        assert_eq!(request.bearer, expect.bearer, "the bearer token");
        if let Some(at) = expect.at {
            assert_eq!(sent.as_millis(), at.as_millis(), "the time of the request");
        }
        if let Some(timeout) = expect.timeout {
            assert_eq!(request.timeout.as_millis(), timeout.as_millis(), "the timeout of the request");
        }
        self.expected = Some(request.id);
    }

    fn answer(&mut self, answer: &Answer) {
        let body = match (&answer.json, &answer.text) {
            (Some(json), _) => id(&json.to_string()),
            (None, text) => text.clone().unwrap_or_default(),
        };
        let retry_after = answer.retry_after.map(Duration::from_secs);
        let response =
            Response { status: answer.status, retry_after, request_id: None, body: body.into_bytes() };
        let request = self.landed();
        self.step(Event::Answered { request, response });
    }

    fn fail(&mut self, failure: Failure) {
        let request = self.landed();
        self.step(Event::Failed { request, failure });
    }

    /// Takes the expected request out of flight; an aborted request may still be answered.
    fn landed(&mut self) -> RequestId {
        let request = self.expected.take().expect("an expected request");
        if self.flight.as_ref().is_some_and(|flight| flight.id == request) {
            self.flight = None;
        } else {
            assert!(self.cancelled.contains(&request), "the request timed out already");
        }
        request
    }

    fn call(&mut self, call: &str) {
        match call {
            "release" => self.step(Event::Release),
            "abandon" => self.step(Event::Abandon),
            "acquire" => self.step(Event::Acquire),
            "wake" => self.step(Event::Wake),
            "activity" => self.machine.note_activity(self.clocks.now().instant()),
            other => panic!("no call: {other}"),
        }
    }

    fn token(&mut self, token: &str) {
        assert!(std::mem::take(&mut self.refresh_asked), "no token was asked for");
        match token {
            "fresh" => self.step(Event::TokenReady),
            "none" => self.step(Event::TokenFailed),
            other => panic!("no token: {other}"),
        }
    }

    fn state(&self, wanted: &Map<String, Value>) {
        let shown = self.shown(&self.machine.state(self.clocks.now()));
        for (name, value) in wanted {
            let value = match name.as_str() {
                "until" | "since" => {
                    json!(parse_span(value.as_str().expect("a span")).as_millis() as u64)
                }
                _ => value.clone(),
            };
            assert_eq!(shown.get(name), Some(&value), "{name} of {shown:?}");
        }
    }

    fn shown(&self, state: &State) -> Map<String, Value> {
        let point = |deadline: Deadline| json!(self.clocks.since_beginning(deadline).as_millis() as u64);
        let mut shown = Map::new();
        shown.insert("kind".to_owned(), json!(state.name()));
        let members = match state {
            State::Active { until } | State::Grace { until } => vec![("until", point(*until))],
            State::Offline { since, until } => vec![("since", point(*since)), ("until", point(*until))],
            State::Lost(loss) => vec![
                ("reason", json!(loss.reason.name())),
                ("by", json!(loss.by)),
                ("retry", json!(loss.retry)),
            ],
            State::Refused(refusal) => vec![("code", json!(refusal.code()))],
            State::Acquiring | State::Reacquiring | State::Released => Vec::new(),
        };
        shown.extend(members.into_iter().map(|(name, value)| (name.to_owned(), value)));
        shown
    }

    /// Advances the clocks, and fires timers and timeouts at their exact time.
    fn advance(&mut self, span: Duration) {
        let end = self.clocks.now().instant().after(span);
        let mut at_once = 0;
        loop {
            let now = self.clocks.now();
            let timer = self.machine.wake_at();
            let timeout = self.flight.as_ref().map(|flight| flight.times_out);
            let Some(next) = [timer, timeout].into_iter().flatten().min().filter(|next| *next <= end) else {
                break;
            };
            at_once = if next.has_passed(now) { at_once + 1 } else { 0 };
            assert!(at_once < STEPS_AT_ONCE_MAX, "the machine asks for time that has passed");
            self.clocks.advance(next.remaining(now));
            match timeout.filter(|timeout| *timeout == next).and_then(|_| self.flight.take()) {
                Some(Flight { id: request, .. }) => {
                    self.step(Event::Failed { request, failure: Failure::Timeout });
                }
                None => self.step(Event::Tick),
            }
        }
        self.clocks.advance(end.remaining(self.clocks.now()));
    }

    fn step(&mut self, event: Event) {
        let drawn = match self.jitters {
            Jitters::One(one) => *one,
            Jitters::Many(many) => many[self.steps % many.len()],
        };
        self.steps += 1;
        let actions = self.machine.step(event, self.clocks.now(), Jitter::new(drawn));
        self.carry_out(actions);
        if let State::Active { until } = self.machine.state(self.clocks.now()) {
            assert!(!until.has_passed(self.clocks.now()), "active after the deadline");
        }
    }

    fn carry_out(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Send(request) => {
                    assert!(self.flight.is_none(), "a second request in flight: {request:?}");
                    let now = self.clocks.now().instant();
                    let times_out = now.after(request.timeout);
                    self.flight = Some(Flight { id: request.id, times_out });
                    self.sent.push_back((request, self.clocks.since_beginning(now)));
                }
                Action::Cancel(id) => {
                    self.flight.take_if(|flight| flight.id == id);
                    self.cancelled.push(id);
                }
                Action::RefreshToken => {
                    assert!(!self.refresh_asked, "a second refresh");
                    self.refresh_asked = true;
                }
                Action::Tell(state) => self.told.push(state.name().to_owned()),
                Action::Finish(finish) => {
                    assert!(self.finish.is_none(), "a second end");
                    self.finish = Some(finish);
                }
            }
        }
    }
}

fn expect(method: &str, path: &str) -> Expect {
    Expect {
        method: method.to_owned(),
        path: path.to_owned(),
        json: None,
        bearer: true,
        at: None,
        timeout: None,
    }
}

/// Returns the event of a notice: an end, or a stream that is over.
fn event(Notice { session, reason, by }: &Notice) -> Event {
    let session = id(session);
    let Some(reason) = reason else {
        assert!(by.is_none(), "a cause without a reason");
        return Event::StreamOver { session };
    };
    Event::Ended(SessionEnd {
        session,
        reason: LossReason::from_name(reason),
        by: by.as_deref().map(Into::into),
    })
}

/// Puts ids where a vector has their names.
fn id(text: &str) -> String {
    text.replace("$S", "0198a0aa-0000-7000-8000-000000000001")
        .replace("$T", "0198a0aa-0000-7000-8000-000000000002")
}

fn failure(kind: &str) -> Failure {
    match kind {
        "refused" => Failure::Refused,
        "reset-before-send" => Failure::ResetBeforeSend,
        "reset-after-send" => Failure::ResetAfterSend,
        "timeout" => Failure::Timeout,
        "truncated" => Failure::Truncated,
        "garbage" => Failure::Garbage,
        "no-token" => Failure::NoToken,
        other => panic!("no failure: {other}"),
    }
}
