//! The machine beside its vectors: `Debug` hides secrets, and a driver gets what it needs to know.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

use std::fmt::{Debug, Write as _};
use std::sync::Arc;
use std::time::Duration;

use seatkeeper_client_core::{
    Action, DeviceDoor, DeviceType, Door, Event, Jitter, LicenseDoor, Machine, Method, Now, Plan, Refusal,
    Request, Response, State,
};
use serde_json::{Value, json};

const KEY: &str = "CANARY-LICENSE-7f3a91-KEY9";
const CODE: &str = "canary-code-5be2c04d";
const NOW: Now = Now { mono: Duration::ZERO, boot: Duration::ZERO, wall: Duration::ZERO };

/// Appends both `Debug` forms of the value.
fn show(text: &mut String, value: &impl Debug) {
    writeln!(text, "{value:?} {value:#?}").unwrap();
}

fn sent(actions: &[Action]) -> Request {
    let request = actions.iter().find_map(|action| match action {
        Action::Send(request) => Some(request.clone()),
        Action::Cancel(_) | Action::RefreshToken | Action::Tell(_) | Action::Finish(_) => None,
    });
    request.unwrap()
}

/// The request in the log of the server.
const REQUEST_ID: &str = "5a2c41d0";

fn answered(request: &Request, status: u16, body: &Value) -> Event {
    let body = body.to_string().into_bytes();
    let request_id = Some(REQUEST_ID.into());
    Event::Answered {
        request: request.id,
        response: Response { status, retry_after: None, request_id, body },
    }
}

fn session(machine: &Machine) -> Option<&str> {
    machine.session().map(|id| &**id)
}

/// Plays an acquire that is answered.
fn acquire(door: impl Into<Door>, status: u16, body: &Value) -> Machine {
    let (mut machine, actions) = Machine::new(Plan::new(door), NOW);
    machine.step(answered(&sent(&actions), status, body), NOW, Jitter::new(0.5));
    machine
}

#[test]
fn no_debug_output_shows_a_license_key_or_a_release_code() {
    let mut text = String::new();
    let (mut machine, actions) = Machine::new(Plan::new(LicenseDoor::new(KEY, "m")), NOW);
    show(&mut text, &(&machine, &actions));
    let grant = json!({ "session_id": "s", "expires_in_seconds": 360, "release_code": CODE });
    let granted = answered(&sent(&actions), 201, &grant);
    show(&mut text, &granted);
    let mut events = vec![granted, Event::Release];
    while let Some(event) = (!events.is_empty()).then(|| events.remove(0)) {
        let actions = machine.step(event, NOW, Jitter::new(0.5));
        show(&mut text, &(&machine, &actions, machine.state(NOW)));
        for action in &actions {
            match action {
                Action::Send(request) if request.bearer => {
                    let rejected = answered(request, 401, &json!({}));
                    show(&mut text, &rejected);
                    events.push(rejected);
                }
                Action::Send(request) => {
                    assert_eq!(request.body.as_ref().unwrap()["release_code"], CODE);
                    events.push(answered(request, 204, &json!({})));
                }
                Action::RefreshToken => events.push(Event::TokenFailed),
                Action::Cancel(_) | Action::Tell(_) | Action::Finish(_) => {}
            }
        }
    }
    assert!(text.contains("Finish(Unconfirmed)"), "the release is by code: {text}");
    let bytes = |secret: &str| format!("{:?}", secret.as_bytes()).trim_matches(['[', ']']).to_owned();
    for secret in [KEY, CODE, "7f3a91", "5be2c04d", &bytes("7f3a91"), &bytes("5be2c04d")] {
        assert!(!text.contains(secret), "{secret} is shown: {text}");
    }
    assert!(text.contains("****KEY9"), "{text}");
}

#[test]
fn a_granted_seat_names_its_seats_and_a_granted_screen_its_devices() {
    let grant = json!({
        "session_id": "s", "license_id": "l", "expires_in_seconds": 90, "seats_used": 2, "seats_total": 5,
    });
    let seat = acquire(LicenseDoor::new("K", "m"), 201, &grant);
    assert_eq!(
        (session(&seat), seat.license_id().map(|id| &**id), seat.seats()),
        (Some("s"), Some("l"), Some((2, 5)))
    );
    let grant =
        json!({ "session_id": "s", "expires_in_seconds": 90, "devices_in_use": 1, "device_limit": 3 });
    let screen = acquire(DeviceDoor::new("d", DeviceType::Tv), 201, &grant);
    assert_eq!((session(&screen), screen.license_id(), screen.seats()), (Some("s"), None, Some((1, 3))));
}

#[test]
fn a_refused_device_is_told_who_has_the_screens() {
    let full = json!({
        "type": "/problems/devices-full", "title": "full", "device_limit": 1, "devices_in_use": 2,
        "sessions": [
            { "session_id": "s", "device_type": "tv", "device_name": "Living room", "ip": "192.0.2.1",
              "started_at": "2026-01-01T00:00:00Z", "last_heartbeat_at": "2026-01-01T00:01:00Z", "current": false },
            { "session_id": "t" },
        ],
    });
    let refused = acquire(DeviceDoor::new("d", DeviceType::Mobile), 403, &full);
    let State::Refused(Refusal::Denied(problem)) = refused.state(NOW) else {
        panic!("{:?}", refused.state(NOW))
    };
    assert_eq!((problem.device_limit, problem.devices_in_use), (Some(1), Some(2)));
    let names: Vec<_> = problem.sessions.iter().map(|session| session.device_name.as_deref()).collect();
    assert_eq!(names, [Some("Living room"), None]);
    let tv = &problem.sessions[0];
    assert_eq!((tv.session_id.as_str(), tv.device_type.as_deref()), ("s", Some("tv")));
    let (started, last) = (tv.started_at.as_deref(), tv.last_heartbeat_at.as_deref());
    assert_eq!((started, last), (Some("2026-01-01T00:00:00Z"), Some("2026-01-01T00:01:00Z")));
}

#[test]
fn a_door_names_its_event_stream_and_its_machine() {
    let license = Door::from(LicenseDoor::new("K", "m"));
    assert_eq!(license.events_path("s"), "/api/v1/licenses/sessions/s/events");
    assert_eq!(license.machine(), "m");
    let device = Door::from(DeviceDoor::new("d", DeviceType::Browser));
    assert_eq!(device.events_path("s"), "/api/v1/devices/sessions/s/events");
    assert_eq!(device.machine(), "d");
}

#[test]
fn every_type_of_device_has_a_name() {
    for kind in DeviceType::ALL {
        assert_eq!(DeviceType::from_name(kind.as_str()), Some(kind));
    }
    assert_eq!(DeviceType::from_name("toaster"), None);
}

/// Plays the first heartbeat of a resumed session.
fn resume(status: u16, body: &Value) -> (Machine, Vec<Action>) {
    let (mut machine, actions) = Machine::resume(Plan::new(LicenseDoor::new(KEY, "m")), "s", NOW);
    let request = sent(&actions);
    assert_eq!((request.method, &*request.path), (Method::Patch, "/api/v1/licenses/sessions/s/heartbeat"));
    assert_eq!(machine.state(NOW), State::Reacquiring, "no word of the server yet");
    let actions = machine.step(answered(&request, status, body), NOW, Jitter::new(0.5));
    (machine, actions)
}

#[test]
fn a_resumed_session_that_a_heartbeat_renews_is_active() {
    let (machine, _) = resume(200, &json!({ "expires_in_seconds": 90, "heartbeat_interval_seconds": 30 }));
    assert_eq!(machine.state(NOW), State::Active { until: NOW.instant().after(Duration::from_secs(90)) });
    let next = NOW.instant().after(Duration::from_secs(30).mul_f64(0.95));
    assert_eq!((session(&machine), machine.wake_at()), (Some("s"), Some(next)));
}

#[test]
fn a_resumed_session_that_has_ended_is_lost_without_a_second_session() {
    let ends = [
        (404, json!({ "type": "/problems/session-not-found" }), "not_found"),
        (410, json!({ "type": "/problems/session-ended", "reason": "expired" }), "expired"),
        (410, json!({ "type": "/problems/session-ended", "reason": "revoked" }), "revoked"),
        (403, json!({ "type": "/problems/forbidden" }), "unauthorized"),
    ];
    for (status, body, reason) in ends {
        let (machine, actions) = resume(status, &body);
        let State::Lost(loss) = machine.state(NOW) else { panic!("{:?}", machine.state(NOW)) };
        assert_eq!((loss.reason.name(), loss.retry, machine.wake_at()), (reason, false, None));
        assert_eq!(loss.request_id.as_deref(), Some(REQUEST_ID));
        assert!(actions.iter().all(|action| matches!(action, Action::Tell(_))), "{actions:?}");
    }
}

#[test]
fn a_resumed_session_is_asked_for_again_in_an_outage() {
    let (mut machine, _) = resume(503, &Value::Null);
    assert_eq!(machine.state(NOW), State::Reacquiring, "no grace without a word of the server");
    let at = machine.wake_at().unwrap();
    assert_eq!(at, NOW.instant().after(Duration::from_millis(500)));
    let now = Now { mono: at.boot(), boot: at.boot(), ..NOW };
    assert_eq!(sent(&machine.step(Event::Tick, now, Jitter::new(0.5))).method, Method::Patch);
}

/// The session may be near its end, which only the server knows.
#[test]
fn a_resumed_session_waits_for_half_an_interval_at_most() {
    let (mut machine, actions) = Machine::resume(Plan::new(LicenseDoor::new(KEY, "m")), "s", NOW);
    let response = Response {
        status: 503,
        retry_after: Some(Duration::from_secs(300)),
        request_id: None,
        body: Vec::new(),
    };
    let event = Event::Answered { request: sent(&actions).id, response };
    machine.step(event, NOW, Jitter::new(0.5));
    assert_eq!(machine.wake_at(), Some(NOW.instant().after(Duration::from_secs(15))));
}

#[test]
fn seats_of_one_license_share_the_text_of_its_id() {
    let grant =
        |license: &str| json!({ "session_id": "s", "license_id": license, "expires_in_seconds": 360 });
    let first = acquire(LicenseDoor::new(KEY, "m1"), 201, &grant("l1"));
    let known = first.license_id().unwrap();
    for (license, is_shared) in [("l1", true), ("l2", false)] {
        let mut machine = acquire(LicenseDoor::new(KEY, "m2"), 201, &grant(license));
        machine.share_license_id(known);
        let id = machine.license_id().unwrap();
        assert_eq!((&**id, Arc::ptr_eq(id, known)), (license, is_shared));
    }
}
