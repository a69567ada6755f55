//! The C functions called from Rust, against a server whose answers the test computes.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

#[path = "../../client/tests/scripted/mod.rs"]
mod scripted;

use std::ffi::{CStr, CString, c_void};
use std::mem::size_of;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use scripted::{Arrived, Reply, Scripted};
use seatkeeper::*;
use serde_json::json;
use tokio::runtime::Runtime;

const IN_TIME: Duration = Duration::from_secs(10);

/// The time of an answer to a release from a server that is away.
const AWAY: Duration = Duration::from_secs(1);

/// A server on a runtime of its own, with a client and a seat in C.
struct Held {
    server: Scripted,
    _runtime: Runtime,
    client: *mut SkClient,
    seat: *mut SkSeat,
    /// True once the server answers 503 to a release, after [`AWAY`].
    is_away: Arc<AtomicBool>,
}

impl Held {
    /// Takes a seat that ends after `expires` seconds, with a grace. `beat` answers each heartbeat, by its number.
    fn new(expires: u64, grace: u64, beat: impl Fn(usize) -> Reply + Send + Sync + 'static) -> Self {
        let grant = json!({
            "session_id": "0198a0aa-0000-7000-8000-000000000001", "expires_in_seconds": expires,
            "heartbeat_interval_seconds": 1, "grace_seconds": grace, "license_id": "L",
            "seats_used": 1, "seats_total": 5,
        })
        .to_string();
        let beats = Mutex::new(0);
        let runtime = Runtime::new().unwrap();
        let is_away = Arc::new(AtomicBool::new(false));
        let away = is_away.clone();
        let reply = move |request: &Arrived, earlier: usize| match request.target.split(' ').next() {
            // A server that is away acquires no seat again.
            Some("POST") if earlier > 0 && grace > 0 => Reply::new(503, ""),
            Some("POST") => Reply::new(201, grant.clone()),
            Some("PATCH") => {
                let mut beats = beats.lock().unwrap();
                *beats += 1;
                beat(*beats)
            }
            _ if away.load(Ordering::Relaxed) => Reply(503, "", String::new(), AWAY),
            _ => Reply::new(204, ""),
        };
        let server = runtime.block_on(Scripted::start(reply));
        let (url, token) = (CString::new(server.url.as_str()).unwrap(), c"t");
        let options = SkOptions {
            size: size_of::<SkOptions>() as u32,
            server: url.as_ptr(),
            token: token.as_ptr(),
            flags: SK_NO_EVENT_STREAMS,
            ..no_options()
        };
        let (mut client, mut seat) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: all pointers are those of values of this function, of the right types.
        assert_eq!(unsafe { sk_client_open(&options, &mut client, ptr::null_mut()) }, SK_OK);
        let request = request(c"K", c"m");
        // SAFETY: all pointers are those of values of this function, of the right types.
        assert_eq!(unsafe { sk_acquire(client, &request, &mut seat, ptr::null_mut()) }, SK_OK);
        Self { server, _runtime: runtime, client, seat, is_away }
    }

    /// Waits until the check has this result.
    fn await_check(&self, wanted: i32) {
        let began = Instant::now();
        while sk_seat_check(self.seat) != wanted {
            assert!(began.elapsed() < IN_TIME, "{} instead of {wanted}", sk_seat_check(self.seat));
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until this many heartbeats have been answered. The seat is held meanwhile.
    fn await_beats(&self, wanted: usize) {
        let began = Instant::now();
        while self.server.arrived("PATCH").len() < wanted {
            assert!(sk_seat_check(self.seat) >= 0, "{}", sk_seat_check(self.seat));
            assert!(began.elapsed() < IN_TIME, "{} heartbeats", self.server.arrived("PATCH").len());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn state(&self) -> SkState {
        let mut state =
            SkState { size: size_of::<SkState>() as u32, kind: 0, reason: 0, retry: 0, remaining_ms: 0 };
        // SAFETY: the pointer is that of a local with the right size.
        assert_eq!(unsafe { sk_seat_state(self.seat, &mut state) }, SK_OK);
        state
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        sk_seat_free(self.seat);
        sk_client_close(self.client, 2_000);
    }
}

fn no_options() -> SkOptions {
    SkOptions {
        size: 0,
        connect_timeout_ms: 0,
        server: ptr::null(),
        tenant: ptr::null(),
        license_key: ptr::null(),
        token: ptr::null(),
        token_file: ptr::null(),
        ca_file: ptr::null(),
        app_name: ptr::null(),
        app_version: ptr::null(),
        flags: 0,
        reserved: 0,
        state_dir: ptr::null(),
    }
}

fn request(license: &CStr, machine: &CStr) -> SkRequest {
    SkRequest {
        size: size_of::<SkRequest>() as u32,
        wait_ms: 0,
        license_key: license.as_ptr(),
        machine_id: machine.as_ptr(),
        instance_id: ptr::null(),
        metadata_json: ptr::null(),
        patience_ms: 0,
        flags: 0,
    }
}

unsafe extern "C" fn tell(state: *const SkState, context: *mut c_void) {
    // SAFETY: the library passes a state that lives until the return.
    let state = unsafe { *state };
    // SAFETY: each test passes a sender that outlives the seat, and `Sender` may be used by each thread.
    let told = unsafe { &*context.cast::<Sender<SkState>>() };
    // The test may have ended.
    let _ = told.send(state);
}

fn next(heard: &Receiver<SkState>) -> (i32, i32) {
    let state = heard.recv_timeout(IN_TIME).unwrap();
    (state.kind, state.retry)
}

#[test]
fn an_outage_is_offline_and_the_answer_ends_it() {
    let beat = |beat| if beat <= 20 { Reply::new(503, "") } else { Reply::renewed(360) };
    let held = Held::new(360, 0, beat);
    assert_eq!(sk_seat_check(held.seat), SK_OK);
    held.await_check(SK_OFFLINE);
    assert_eq!(held.state().kind, SK_STATE_OFFLINE);
    assert!((300_000..360_000).contains(&held.state().remaining_ms));
    held.await_check(SK_OK);
    assert_eq!(held.state().kind, SK_STATE_ACTIVE);
}

#[test]
fn a_grace_goes_on_past_the_deadline_and_each_change_is_told() {
    let held = Held::new(2, 3, |_| Reply::new(503, ""));
    let (told, heard) = channel();
    let told = Arc::new(told);
    // SAFETY: `told` outlives the seat: `held` is dropped by hand below.
    let result = unsafe { sk_seat_on_change(held.seat, Some(tell), Arc::as_ptr(&told).cast_mut().cast()) };
    assert_eq!(result, SK_OK);
    held.await_check(SK_GRACE);
    assert_eq!(held.state().kind, SK_STATE_GRACE);
    held.await_check(SK_LOST);
    let state = held.state();
    assert_eq!((state.kind, state.retry, state.remaining_ms), (SK_STATE_LOST, 1, 0));
    // SAFETY: the name is a text of the library that ends with a zero.
    assert_eq!(unsafe { CStr::from_ptr(sk_reason_name(state.reason)) }, c"deadline");
    let wanted = [(SK_STATE_OFFLINE, 0), (SK_STATE_GRACE, 0), (SK_STATE_LOST, 1)];
    assert_eq!([next(&heard), next(&heard), next(&heard)], wanted);
    drop(held);
    assert!(heard.try_recv().is_err(), "the program itself released the seat");
}

/// The context of [`replace`].
struct Replacing {
    seat: *mut SkSeat,
    told: Sender<SkState>,
    calls: AtomicUsize,
}

/// Sets [`tell`] in its own place.
unsafe extern "C" fn replace(_state: *const SkState, context: *mut c_void) {
    // SAFETY: the test passes a `Replacing` that outlives the seat.
    let replacing = unsafe { &*context.cast::<Replacing>() };
    replacing.calls.fetch_add(1, Ordering::Relaxed);
    let told = ptr::from_ref(&replacing.told).cast_mut().cast();
    // SAFETY: `told` outlives the seat.
    unsafe { sk_seat_on_change(replacing.seat, Some(tell), told) };
}

#[test]
fn a_function_that_replaces_itself_at_once_stays_replaced() {
    let is_back = Arc::new(AtomicBool::new(false));
    let back = is_back.clone();
    let beat = move |_| match back.load(Ordering::Relaxed) {
        true => Reply::renewed(360),
        false => Reply::new(503, ""),
    };
    let held = Held::new(360, 0, beat);
    held.await_check(SK_OFFLINE);
    let (told, heard) = channel();
    let replacing = Box::new(Replacing { seat: held.seat, told, calls: AtomicUsize::new(0) });
    let context = ptr::from_ref(&*replacing).cast_mut().cast();
    for round in 1..=100 {
        // SAFETY: `replacing` outlives the seat: `held` is dropped by hand below.
        assert_eq!(unsafe { sk_seat_on_change(held.seat, Some(replace), context) }, SK_OK);
        assert_eq!(next(&heard), (SK_STATE_OFFLINE, 0));
        assert_eq!(replacing.calls.load(Ordering::Relaxed), round);
    }
    is_back.store(true, Ordering::Relaxed);
    assert_eq!(next(&heard), (SK_STATE_ACTIVE, 0));
    assert_eq!(replacing.calls.load(Ordering::Relaxed), 100);
    drop(held);
}

/// The context of [`wait_for_the_end`].
struct Waiting {
    seat: *mut SkSeat,
    entered: Sender<()>,
    ended: Sender<(i32, i32)>,
}

/// Waits within the callback until a wait tells the release, or fails.
unsafe extern "C" fn wait_for_the_end(_state: *const SkState, context: *mut c_void) {
    // SAFETY: the test passes a `Waiting` that lives for ever, and `Sender` may be used by each thread.
    let waiting = unsafe { &*context.cast::<Waiting>() };
    let mut state =
        SkState { size: size_of::<SkState>() as u32, kind: 0, reason: 0, retry: 0, remaining_ms: 0 };
    loop {
        // SAFETY: the pointer is that of a local with the right size.
        let result = unsafe { sk_seat_wait(waiting.seat, SK_FOREVER, &mut state) };
        if result != SK_OK || state.kind == SK_STATE_RELEASED {
            waiting.ended.send((result, state.kind)).unwrap_or_default();
            return;
        }
        // The test may have ended.
        let _ = waiting.entered.send(());
    }
}

#[test]
fn a_free_ends_the_wait_of_a_callback_and_gives_the_seat_back() {
    let held = Held::new(360, 0, |_| Reply::new(503, ""));
    let ((entered, inside), (ended, end)) = (channel(), channel());
    let waiting: &Waiting = Box::leak(Box::new(Waiting { seat: held.seat, entered, ended }));
    let context = ptr::from_ref(waiting).cast_mut().cast();
    // SAFETY: `waiting` lives for ever.
    assert_eq!(unsafe { sk_seat_on_change(held.seat, Some(wait_for_the_end), context) }, SK_OK);
    inside.recv_timeout(IN_TIME).unwrap();
    // The callback begins its second wait.
    std::thread::sleep(Duration::from_millis(200));
    let (seat, (free, freed)) = (held.seat.expose_provenance(), channel());
    std::thread::spawn(move || {
        sk_seat_free(ptr::with_exposed_provenance_mut(seat));
        free.send(()).unwrap();
    });
    freed.recv_timeout(IN_TIME).unwrap();
    // On a busy machine the free may come before the second wait, which is then refused.
    let (result, kind) = end.try_recv().expect("the callback has returned");
    assert!(result == SK_MISUSE || (result, kind) == (SK_OK, SK_STATE_RELEASED), "{result}, {kind}");
    let began = Instant::now();
    while held.server.arrived("DELETE").is_empty() {
        assert!(began.elapsed() < IN_TIME, "the seat stays held");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_seat_that_is_acquired_again_is_unconfirmed() {
    let gone = r#"{"type":"/problems/session-ended","title":"over","reason":"expired"}"#;
    let beat = move |beat| if beat == 1 { Reply::new(410, gone) } else { Reply::renewed(360) };
    let held = Held::new(360, 0, beat);
    held.await_check(SK_UNCONFIRMED);
    held.await_check(SK_OK);
    assert_eq!(held.server.arrived("POST").len(), 2);
}

#[test]
fn a_released_seat_is_released_and_a_second_release_has_the_same_result() {
    let held = Held::new(360, 0, |_| Reply::renewed(360));
    assert_eq!(sk_seat_release(held.seat, 2_000), SK_OK);
    assert_eq!(sk_seat_release(held.seat, 2_000), SK_OK, "the result of the first release");
    assert_eq!(sk_seat_check(held.seat), SK_RELEASED);
}

#[test]
fn a_second_release_waits_no_longer_than_its_own_time() {
    let held = Held::new(360, 0, |_| Reply::renewed(360));
    held.is_away.store(true, Ordering::Relaxed);
    let (first_is_over, seat) = (AtomicBool::new(false), held.seat.expose_provenance());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(sk_seat_release(ptr::with_exposed_provenance_mut(seat), 60_000), SK_UNCONFIRMED);
            first_is_over.store(true, Ordering::Relaxed);
        });
        let began = Instant::now();
        while held.server.arrived("DELETE").is_empty() {
            assert!(began.elapsed() < IN_TIME, "no release");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(sk_seat_release(held.seat, 0), SK_UNCONFIRMED);
        assert!(!first_is_over.load(Ordering::Relaxed), "the second release waited for the first");
    });
    assert_eq!(sk_seat_release(held.seat, 0), SK_UNCONFIRMED, "the result of the first release");
}

#[test]
fn a_release_after_an_unconfirmed_close_promises_nothing() {
    let mut held = Held::new(360, 0, |_| Reply::renewed(360));
    held.is_away.store(true, Ordering::Relaxed);
    assert_eq!(sk_client_close(held.client, 200), SK_UNCONFIRMED);
    held.client = ptr::null_mut();
    held.await_check(SK_RELEASED);
    for _ in 0..2 {
        assert_eq!(sk_seat_release(held.seat, 200), SK_RELEASED);
    }
}

/// Acquires with little patience from a server with this answer, and returns the result with the error's code and message.
fn refused(reply: Reply) -> (i32, String, String) {
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(Scripted::start(move |_, _| reply.clone()));
    let url = CString::new(server.url.as_str()).unwrap();
    let options = SkOptions {
        size: size_of::<SkOptions>() as u32,
        server: url.as_ptr(),
        token: c"t".as_ptr(),
        flags: SK_NO_EVENT_STREAMS,
        ..no_options()
    };
    let (mut client, mut seat, mut error) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    // SAFETY: all pointers are those of values of this function, of the right types.
    assert_eq!(unsafe { sk_client_open(&options, &mut client, ptr::null_mut()) }, SK_OK);
    let request = SkRequest { patience_ms: 100, ..request(c"K", c"m") };
    // SAFETY: all pointers are those of values of this function, of the right types.
    let result = unsafe { sk_acquire(client, &request, &mut seat, &mut error) };
    assert!(seat.is_null() && !error.is_null(), "{result}");
    // SAFETY: the texts of an error end with a zero, and live until its free below.
    let text = |text| unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned();
    let told = (result, text(sk_error_code(error)), text(sk_error_message(error)));
    let json: serde_json::Value = serde_json::from_str(&text(sk_error_json(error))).unwrap();
    assert_eq!((json["code"].as_str(), json["message"].as_str()), (Some(&*told.1), Some(&*told.2)));
    sk_error_free(error);
    sk_client_close(client, 2_000);
    told
}

#[test]
fn an_answer_of_another_program_is_no_answer() {
    let page = "<!DOCTYPE html><html><body>Sign in to the network \u{1f512}</body></html>";
    let html = |status| Reply(status, "Content-Type: text/html\r\n", page.to_owned(), Duration::ZERO);
    for status in [200, 201, 204, 302, 400, 403, 404, 502, 503] {
        let (result, code, message) = refused(html(status));
        assert_eq!((result, code.as_str()), (SK_UNREACHABLE, "offline"), "{status}: {message}");
        assert!(message.starts_with("the server cannot be reached: "), "{status}: {message}");
        assert!(!message.contains('<'), "{status}: {message}");
    }
    for body in ["", "null", "[]", "{}", r#"{"session_id":7,"expires_in_seconds":60}"#, "\u{0}\u{0}"] {
        let (result, code, message) = refused(Reply::new(201, body));
        assert_eq!((result, code.as_str()), (SK_UNREACHABLE, "offline"), "{body}: {message}");
    }
    let garbage = Reply(200, "Content-Type: application/json\r\n", "{".repeat(1 << 20), Duration::ZERO);
    assert_eq!(refused(garbage).0, SK_UNREACHABLE);
}

#[test]
fn a_page_of_a_proxy_neither_ends_nor_renews_a_seat() {
    let page = "<html>maintenance</html>";
    let html = |status| Reply(status, "Content-Type: text/html\r\n", page.to_owned(), Duration::ZERO);
    let held = Held::new(360, 0, move |beat| match beat {
        1 => html(200),
        2 => html(404),
        3 => html(410),
        _ => Reply::renewed(360),
    });
    held.await_beats(5);
    held.await_check(SK_OK);
    assert_eq!(held.server.arrived("POST").len(), 1, "the seat was not acquired again");
}

#[test]
fn an_expired_token_is_named() {
    let expired = r#"{"type":"/problems/unauthenticated","title":"A valid bearer token is required"}"#;
    let told = |body: &str| refused(Reply::new(401, body));
    let message = "unauthenticated: A valid bearer token is required. Remedy: check the issuer, the audience and the end of \
                   the token";
    let wanted = (SK_DENIED, "unauthenticated".to_owned(), message.to_owned());
    assert_eq!(told(expired), wanted);
    for body in ["", "<html>401</html>"] {
        assert_eq!(told(body), wanted, "{body}");
    }
    let beats = move |beat| if beat == 1 { Reply::new(401, expired) } else { Reply::renewed(360) };
    let held = Held::new(360, 0, beats);
    held.await_beats(3);
    held.await_check(SK_OK);
    assert_eq!(held.server.arrived("POST").len(), 1, "the seat was not acquired again");
}
