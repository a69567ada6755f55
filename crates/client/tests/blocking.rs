//! The client for programs without a Tokio runtime.
#![cfg(feature = "blocking")]
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

mod scripted;

use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use seatkeeper_client::blocking::{Cancel, Client, NoChange};
use seatkeeper_client::{
    CheckError, DeviceType, Error, Failure, Finish, Health, LossReason, State, TokenError,
};
use serde_json::json;
use tokio::runtime::Runtime;

use scripted::{Arrived, Reply, Scripted};

const SESSION: &str = "0198a0aa-0000-7000-8000-000000000001";
/// The longest wait of a test that passes.
const IN_TIME: Duration = Duration::from_secs(20);

/// A server on a runtime of its own.
struct Server {
    server: Scripted,
    _runtime: Runtime,
}

impl Server {
    fn start<F>(reply: F) -> Self
    where
        F: Fn(&Arrived, usize) -> Reply + Send + Sync + 'static,
    {
        let runtime = Runtime::new().unwrap();
        let server = runtime.block_on(Scripted::start(reply));
        Self { server, _runtime: runtime }
    }

    fn client(&self) -> Client {
        Client::builder(&self.server.url).token("t").event_streams(false).build().unwrap()
    }

    /// Returns the methods of all requests.
    fn methods(&self) -> Vec<String> {
        let arrived = self.server.arrived("");
        arrived.iter().map(|request| request.target.split(' ').next().unwrap().to_owned()).collect()
    }
}

fn grant(interval: u64) -> Reply {
    let grant = json!({
        "session_id": SESSION, "expires_in_seconds": 360, "heartbeat_interval_seconds": interval,
        "license_id": "L", "seats_used": 1, "seats_total": 5,
    });
    Reply::new(201, grant.to_string())
}

fn willing(request: &Arrived, _: usize) -> Reply {
    match request.target.split(' ').next() {
        Some("POST") => grant(120),
        Some("PATCH") => Reply::renewed(360),
        _ => Reply::new(204, ""),
    }
}

fn late(reply: Reply) -> Reply {
    Reply(reply.0, reply.1, reply.2, Duration::from_secs(60))
}

#[test]
fn a_seat_that_is_left_is_not_given_back_and_a_release_under_way_goes_on() {
    let server = Server::start(willing);
    let client = server.client();
    let acquire = |machine| client.license("K").machine(machine).acquire().unwrap();
    let (left, released) = (acquire("m"), acquire("n"));
    released.release_within(Duration::ZERO).unwrap();
    released.leave().unwrap();
    left.leave().unwrap();
    assert!(matches!(left.release_within(IN_TIME), Err(Error::Closed)));
    assert_eq!((left.state(), left.check()), (State::Released, Err(CheckError::Released)));
    drop((left, released));
    assert_eq!(client.close_within(IN_TIME).unwrap(), Finish::GivenBack);
    assert_eq!(server.methods(), ["POST", "POST", "DELETE"]);
}

#[test]
fn a_seat_is_taken_checked_and_given_back_without_a_runtime() {
    let server = Server::start(willing);
    let client = server.client();
    let seat = client.license("K").machine("m").acquire().unwrap();
    assert_eq!(seat.check(), Ok(()));
    assert!(matches!(seat.state(), State::Active { .. }));
    let told = (seat.session_id(), seat.license_id(), seat.seats());
    assert_eq!(told, (Some(SESSION.to_owned()), Some("L".to_owned()), Some((1, 5))));
    seat.activity();
    assert_eq!(seat.release().unwrap(), Finish::GivenBack);
    let device = client.device("tv-0815", DeviceType::Tv).name("Living room").admit().unwrap();
    assert_eq!(device.release().unwrap(), Finish::GivenBack);
    assert_eq!(client.close().unwrap(), Finish::GivenBack);
    let refused = client.license("K").machine("m").acquire();
    assert!(matches!(refused, Err(Error::Closed)), "{refused:?}");
    assert_eq!(server.methods(), ["POST", "DELETE", "POST", "DELETE"]);
}

#[test]
fn errors_are_those_of_the_other_client() {
    let full = r#"{"type":"/problems/license-full","title":"full","seats_total":1}"#;
    let server = Server::start(move |_, _| Reply::new(403, full));
    let error = server.client().license("K").machine("m").acquire().unwrap_err();
    assert!(matches!(&error, Error::Denied(problem) if problem.seats_total == Some(1)), "{error:?}");
    let away = Client::builder("http://127.0.0.1:1").token("t").build().unwrap();
    let error = away.license("K").machine("m").patience(Duration::ZERO).acquire().unwrap_err();
    assert!(matches!(error, Error::Offline { failure: Failure::Refused, .. }), "{error:?}");
    assert!(matches!(Client::builder("seats").build(), Err(Error::Address { .. })));
}

#[test]
fn the_drop_of_the_last_handle_gives_every_seat_back() {
    let server = Server::start(willing);
    let client = server.client();
    let seats: Vec<_> =
        (0..10).map(|n| client.license("K").machine(format!("m{n}")).acquire().unwrap()).collect();
    drop(client);
    assert_eq!(seats[0].check(), Ok(()), "seats are handles");
    assert_eq!(server.server.arrived("DELETE").len(), 0);
    drop(seats);
    assert_eq!(server.server.arrived("DELETE").len(), 10, "given back by the time of the last drop's end");
}

#[test]
fn the_drop_of_the_last_handle_takes_two_seconds_at_most() {
    let server = Server::start(|request, earlier| {
        if request.target.starts_with("POST ") {
            willing(request, earlier)
        } else {
            late(Reply::new(204, ""))
        }
    });
    let seat = server.client().license("K").machine("m").acquire().unwrap();
    let began = Instant::now();
    drop(seat);
    let took = began.elapsed();
    assert!((Duration::from_millis(1_900)..Duration::from_secs(10)).contains(&took), "{took:?}");
}

#[test]
fn an_acquire_is_cancelled_from_another_thread_and_leaves_no_seat() {
    let ((arrive, arrived), (allow, allowed)) = (channel(), channel());
    let gate = Mutex::new((arrive, allowed));
    let server = Server::start(move |request, earlier| {
        if request.target.starts_with("POST ") && earlier == 0 {
            // The first acquire is answered after the cancel alone.
            let gate = gate.lock().unwrap();
            gate.0.send(()).unwrap();
            gate.1.recv_timeout(IN_TIME).unwrap();
        }
        willing(request, earlier)
    });
    let client = server.client();
    let cancel = Cancel::new();
    let (request, handle) = (client.license("K").machine("m"), cancel.clone());
    let acquiring = thread::spawn(move || request.acquire_unless(&handle));
    arrived.recv_timeout(IN_TIME).unwrap();
    cancel.cancel();
    let cancelled = acquiring.join().unwrap();
    assert!(matches!(cancelled, Err(Error::Cancelled)), "{cancelled:?}");
    allow.send(()).unwrap();
    assert_eq!(client.close().unwrap(), Finish::GivenBack);
    assert_eq!(server.methods(), ["POST", "DELETE"]);
    let later = server.client().license("K").machine("m").acquire_unless(&cancel);
    assert!(matches!(later, Err(Error::Cancelled)), "{later:?}");
}

#[test]
fn a_close_ends_an_acquire_that_blocks() {
    let server = Server::start(|_, _| late(grant(120)));
    let client = server.client();
    let request = client.license("K").machine("m");
    let acquiring = thread::spawn(move || request.acquire());
    while server.server.arrived("POST").is_empty() {
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(client.close().unwrap(), Finish::Unconfirmed);
    assert!(matches!(acquiring.join().unwrap(), Err(Error::Closed)));
}

#[test]
fn changes_are_told_to_a_thread_that_waits() {
    let server = Server::start(|request, earlier| match &request.target {
        target if target.starts_with("PATCH ") => {
            Reply::new(410, r#"{"type":"/problems/session-ended","reason":"revoked"}"#)
        }
        target if target.starts_with("POST ") => grant(1),
        _ => willing(request, earlier),
    });
    let client = server.client();
    let seat = client.license("K").machine("m").acquire().unwrap();
    let (mut changes, mut all) = (seat.changes(), seat.changes());
    assert_eq!(changes.next_within(Duration::from_millis(1)), Err(NoChange::TimedOut));
    let State::Lost(loss) = changes.next_within(Duration::from_secs(20)).unwrap() else { panic!("no loss") };
    assert_eq!(loss.reason, LossReason::Revoked);
    assert!(matches!(all.next(), Some(State::Lost(_))));
    drop(seat);
    assert_eq!(changes.next_within(Duration::from_secs(20)), Ok(State::Released));
    assert_eq!(changes.next_within(Duration::from_secs(20)), Err(NoChange::Over));
    assert_eq!(all.last(), Some(State::Released));
}

#[test]
fn a_token_source_may_block_or_panic() {
    let server = Server::start(willing);
    let source = |token: fn() -> Result<String, TokenError>| {
        let builder = Client::builder(&server.server.url).event_streams(false).token_source(move || {
            thread::sleep(Duration::from_millis(50));
            token()
        });
        let request = builder.build().unwrap().license("K").machine("m").patience(Duration::ZERO);
        request.acquire()
    };
    source(|| Ok("t".to_owned())).unwrap();
    let error = source(|| panic!("the program's own fault")).unwrap_err();
    assert!(matches!(error, Error::Offline { failure: Failure::NoToken, .. }), "{error:?}");
}

#[test]
fn a_token_source_that_hangs_keeps_no_program() {
    let (ask, asked) = sync_channel(1);
    let client = Client::builder("http://127.0.0.1:1").token_source(move || {
        ask.send(()).unwrap();
        thread::sleep(Duration::from_secs(30));
        Ok("t".to_owned())
    });
    let client = client.build().unwrap();
    let request = client.license("K").machine("m");
    let cancel = Cancel::new();
    let handle = cancel.clone();
    let acquiring = thread::spawn(move || request.acquire_unless(&handle).map(|_| ()));
    asked.recv_timeout(IN_TIME).unwrap();
    cancel.cancel();
    let began = Instant::now();
    assert!(matches!(acquiring.join().unwrap(), Err(Error::Cancelled)));
    drop(client);
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

#[tokio::test]
async fn calls_within_a_runtime_block_and_do_not_panic() {
    let server = tokio::task::spawn_blocking(|| Server::start(willing)).await.unwrap();
    let client = server.client();
    let seat = client.license("K").machine("m").acquire().unwrap();
    assert_eq!(seat.release().unwrap(), Finish::GivenBack);
    drop(client);
    tokio::task::spawn_blocking(move || drop(server)).await.unwrap();
}

#[test]
fn a_release_and_a_close_wait_no_longer_than_asked() {
    let server = Server::start(|request, earlier| {
        if request.target.starts_with("POST ") {
            willing(request, earlier)
        } else {
            late(Reply::new(204, ""))
        }
    });
    let client = server.client();
    let began = Instant::now();
    let seat = client.license("K").machine("m").acquire().unwrap();
    assert_eq!(seat.health(), Ok(Health::Active));
    assert!((Duration::from_secs(300)..Duration::from_secs(360)).contains(&seat.remaining()));
    assert_eq!(seat.release_within(Duration::from_millis(50)).unwrap(), Finish::Unconfirmed);
    assert_eq!((seat.state(), seat.remaining()), (State::Released, Duration::ZERO));
    let other = client.license("K").machine("n").acquire().unwrap();
    assert_eq!(client.close_within(Duration::from_millis(50)).unwrap(), Finish::Unconfirmed);
    assert_eq!(other.check(), Err(CheckError::Released));
    drop((client, seat, other));
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(server.server.arrived("DELETE").len(), 2);
}

#[test]
fn a_listener_hears_of_each_change_and_of_an_earlier_loss() {
    let server = Server::start(|request, _| {
        if request.target.starts_with("POST ") {
            return grant(1);
        }
        Reply::new(410, r#"{"type":"/problems/session-ended","title":"over","reason":"revoked"}"#)
    });
    let client = server.client();
    let seat = client.license("K").machine("m").acquire().unwrap();
    let (told, heard) = channel();
    let listen =
        |told: Sender<State>| seat.on_change(move |state| told.send(state).unwrap_or_default()).unwrap();
    listen(told.clone());
    assert!(
        matches!(heard.recv_timeout(IN_TIME), Ok(State::Lost(loss)) if loss.reason == LossReason::Revoked)
    );
    listen(told);
    assert!(matches!(heard.recv_timeout(IN_TIME), Ok(State::Lost(_))));
    drop(seat);
    assert_eq!(heard.iter().filter(|state| *state != State::Released).count(), 0, "the listeners are gone");
}

#[test]
fn a_listener_that_sleeps_longer_than_the_ttl_delays_no_heartbeat() {
    const TTL: Duration = Duration::from_secs(4);
    const SLEEP: Duration = Duration::from_secs(6);
    let server = Server::start(|request, _| {
        let session = r#""session_id":"0198a0aa-0000-7000-8000-000000000001""#;
        match request.target.split(' ').next() {
            Some("POST") => {
                let spans =
                    format!(r#""expires_in_seconds":{},"heartbeat_interval_seconds":1"#, TTL.as_secs());
                Reply::new(201, format!("{{{session},{spans}}}"))
            }
            Some("PATCH") => Reply::renewed(TTL.as_secs()),
            _ => Reply::new(204, ""),
        }
    });
    let client = server.client();
    let seat = client.license("K").machine("m").acquire().unwrap();
    let other = client.license("K").machine("n").acquire().unwrap();
    let (entered, inside) = channel();
    seat.on_change(move |_| {
        entered.send(Instant::now()).unwrap();
        thread::sleep(SLEEP);
    })
    .unwrap();
    // The release is a change that the listener hears of, while the other seat goes on.
    seat.release_within(Duration::ZERO).unwrap();
    let began = inside.recv_timeout(Duration::from_secs(10)).unwrap();
    let beats = || server.server.arrived("PATCH").len();
    let before = beats();
    while began.elapsed() < SLEEP - Duration::from_millis(500) {
        assert_eq!(other.check(), Ok(()), "{:?} after the listener was called", began.elapsed());
        thread::sleep(Duration::from_millis(20));
    }
    assert!(beats() >= before + 3, "{} heartbeats in {SLEEP:?}", beats() - before);
    let dropped = Instant::now();
    drop((seat, other, client));
    assert!(dropped.elapsed() < Duration::from_secs(2), "the drop waits for no listener");
}

#[test]
fn a_token_source_that_panics_costs_no_seat() {
    let server = Server::start(|request, _| match request.token.as_deref() {
        Some("old") if request.target.starts_with("PATCH ") => Reply::new(401, "{}"),
        _ => willing(request, 0),
    });
    let calls = Mutex::new(vec!["fresh", "panic", "old"]);
    let builder = Client::builder(&server.server.url).event_streams(false).token_source(move || {
        let token = calls.lock().unwrap().pop().unwrap();
        assert_ne!(token, "panic", "planted");
        Ok(token.to_owned())
    });
    let client = builder.build().unwrap();
    let seat = client.license("K").machine("m").acquire().unwrap();
    let mut changes = seat.changes();
    client.wake();
    assert!(matches!(changes.next_within(IN_TIME), Ok(State::Offline { .. })), "no fresh token");
    while !matches!(seat.state(), State::Active { .. }) {
        changes.next_within(IN_TIME).unwrap();
    }
    assert_eq!(seat.release().unwrap(), Finish::GivenBack);
}
