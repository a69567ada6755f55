//! Seats of a client whose task has ended by a panic.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use tokio::runtime::Runtime;

use crate::blocking::Client;
use crate::scripted::{Arrived, Reply, Scripted};
use crate::{CheckError, Error, LossReason, State};

use super::*;

const GRANT: &str = r#"{"session_id":"0198a0aa-0000-7000-8000-000000000001","expires_in_seconds":360}"#;
/// The longest wait of a passing test.
const IN_TIME: Duration = Duration::from_secs(20);

/// Grants a seat of `K`, forgets the session, and keeps an acquire of `SLOW` waiting.
fn answer(request: &Arrived, slow: &Sender<()>) -> Reply {
    if request.body["license_key"] == "SLOW" {
        slow.send(()).unwrap();
        return Reply(201, "", GRANT.to_owned(), Duration::from_secs(600));
    }
    if request.target.starts_with("POST ") { Reply::new(201, GRANT) } else { Reply::new(404, "{}") }
}

/// Runs `call` on a thread, and returns the output, which must come within [`IN_TIME`].
fn in_time<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, output) = channel();
    thread::spawn(move || done.send(call()));
    output.recv_timeout(IN_TIME).unwrap()
}

fn assert_closed<T: std::fmt::Debug>(result: &Result<T, Error>) {
    assert!(matches!(result, Err(Error::Closed)), "{result:?}");
}

#[test]
fn the_end_of_the_task_ends_every_seat_and_answers_every_call() {
    let runtime = Runtime::new().unwrap();
    let (slow, asked) = channel();
    let server = runtime.block_on(Scripted::start(move |request, _| answer(request, &slow)));
    let client = Client::builder(&server.url).token("t").event_streams(false).build().unwrap();
    let seat = client.license("K").machine("m").acquire().unwrap();
    let changes = seat.changes();
    let (told, heard) = channel();
    seat.on_change(move |state| told.send(state).unwrap()).unwrap();
    let request = client.license("SLOW").machine("m").patience(Duration::from_secs(600));
    let acquiring = thread::spawn(move || request.acquire());
    asked.recv_timeout(IN_TIME).unwrap();

    let is_planted = AtomicBool::new(true);
    seat.seat.shared().listen(Box::new(move |_| {
        assert!(!is_planted.swap(false, Ordering::Relaxed), "planted");
    }));
    client.wake();

    assert_closed(&in_time(|| acquiring.join().unwrap()));
    // The changes are over with the loss.
    let state = in_time(move || changes.last()).unwrap();
    let State::Lost(loss) = &state else { panic!("{state:?}") };
    assert_eq!(seat.state(), state);
    assert_eq!((loss.reason.clone(), loss.retry), (LossReason::from_name("client_ended"), false));
    assert_eq!(seat.check(), Err(CheckError::Lost(loss.clone())));
    assert_eq!(seat.remaining(), Duration::ZERO);
    assert_eq!(heard.iter().last(), Some(state), "the listener is dropped with the seat");
    let (own, other) = (client.clone(), client.license("K").machine("o"));
    assert_closed(&in_time(move || other.acquire()));
    assert_closed(&in_time(move || own.close()));
    assert_closed(&in_time(move || seat.release()));
}
