//! Seats: `sk_seat_…`.

use std::ffi::{c_char, c_void};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use seatkeeper_client::blocking::{Changes, NoChange, Seat as BlockingSeat, Subscription};
use seatkeeper_client::{Error, State};
use serde_json::json;

use crate::callback::{Callback, SkOnChange};
use crate::codes::{
    SK_FOREVER, SK_INTERNAL, SK_MISUSE, SK_OK, SK_RELEASED, SK_TIMEOUT, SK_UNCONFIRMED, check_result,
    error_result, finish_result,
};
use crate::guard::guard;
use crate::memory;
use crate::signals;
use crate::state::SkState;
use crate::table::Table;

pub(crate) static SEATS: Table<Seat> = Table::new(2);

/// `sk_seat`: a handle of a seat.
#[repr(C)]
#[derive(Debug)]
pub struct SkSeat {
    _opaque: [u8; 0],
}

/// A seat behind its handle.
pub(crate) struct Seat {
    seat: BlockingSeat,
    /// The changes for `sk_seat_wait`; `None` while a thread waits.
    changes: Mutex<Option<Changes>>,
    release: Mutex<Release>,
    /// Notified at the end of the first release.
    released: Condvar,
    listener: Mutex<Listener>,
}

/// The first release of a seat.
#[derive(Clone, Copy, Default)]
enum Release {
    #[default]
    NotAsked,
    UnderWay,
    /// The release is over, with this result.
    Done(i32),
}

/// The function of `sk_seat_on_change`.
#[derive(Default)]
struct Listener {
    subscription: Option<Subscription>,
    /// The number of removals and replacements.
    removals: u64,
    /// No function is set any more.
    is_freed: bool,
}

impl Seat {
    pub(crate) fn new(seat: BlockingSeat) -> Self {
        let changes = Mutex::new(Some(seat.changes()));
        Self {
            seat,
            changes,
            release: Mutex::default(),
            released: Condvar::new(),
            listener: Mutex::default(),
        }
    }

    fn state(&self) -> SkState {
        SkState::new(&self.seat.state(), self.seat.remaining())
    }

    /// Gives the seat back. A later call returns the result of the first one, and waits for the result for at most `timeout`.
    fn release(&self, timeout: Duration) -> i32 {
        let mut release = self.release.lock().unwrap_or_else(PoisonError::into_inner);
        if let Release::NotAsked = *release {
            *release = Release::UnderWay;
            drop(release);
            let result = self.release_first(timeout);
            *self.release.lock().unwrap_or_else(PoisonError::into_inner) = Release::Done(result);
            self.released.notify_all();
            return result;
        }
        let is_under_way = |release: &mut Release| matches!(release, Release::UnderWay);
        let waited = self.released.wait_timeout_while(release, timeout, is_under_way);
        match *waited.unwrap_or_else(PoisonError::into_inner).0 {
            Release::Done(result) => result,
            Release::NotAsked | Release::UnderWay => SK_UNCONFIRMED,
        }
    }

    fn release_first(&self, timeout: Duration) -> i32 {
        match self.seat.state() {
            // The client was closed, and only the result of the close tells if the server has confirmed.
            State::Released => SK_RELEASED,
            State::Acquiring
            | State::Active { .. }
            | State::Offline { .. }
            | State::Grace { .. }
            | State::Reacquiring
            | State::Lost(_)
            | State::Refused(_) => finish_result(&self.seat.release_within(timeout)),
        }
    }

    /// Stops the heartbeats without a release. After a release the call has no effect.
    fn leave(&self) -> i32 {
        let mut release = self.release.lock().unwrap_or_else(PoisonError::into_inner);
        if let Release::NotAsked = *release {
            if let Err(error) = self.seat.leave() {
                return error_result(&error);
            }
            *release = Release::Done(SK_RELEASED);
        }
        SK_OK
    }

    /// Waits for the next change since the last call; a change in between is told at once. After the change to
    /// [`State::Released`], each call returns `SK_RELEASED`.
    fn wait(&self, timeout_ms: u32) -> i32 {
        let place = || self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(mut changes) = place().take() else { return SK_MISUSE };
        let change = match timeout_ms {
            SK_FOREVER => changes.next().ok_or(NoChange::Over),
            timeout => changes.next_within(Duration::from_millis(timeout.into())),
        };
        *place() = Some(changes);
        match change {
            Ok(_) => SK_OK,
            Err(NoChange::TimedOut) => SK_TIMEOUT,
            Err(NoChange::Over) => SK_RELEASED,
        }
    }

    /// Calls `callback` with each change. The client library hears of no release, which the program itself asks for. Returns
    /// `SK_MISUSE` if another thread frees the seat meanwhile.
    fn listen(self: &Arc<Self>, callback: Callback) -> i32 {
        let seat = Arc::downgrade(self);
        let listener = move |state| {
            if state != State::Released {
                let remaining = seat.upgrade().map(|seat| seat.seat.remaining()).unwrap_or_default();
                callback.call(&SkState::new(&state, remaining));
            }
        };
        // The first listener of a client starts a thread.
        self.replace_listener(|| signals::blocked(|| self.seat.on_change(listener)))
    }

    /// Removes the old listener, and stores the subscription of `register`. The first call of the new listener may begin within
    /// `register`. The lock is held until the subscription is stored, so a free or a removal finds the subscription and waits
    /// for the call. `register` waits for no call.
    fn replace_listener(&self, register: impl FnOnce() -> Result<Subscription, Error>) -> i32 {
        let removals = self.remove_listener();
        let mut current = self.listener();
        if current.is_freed {
            return SK_MISUSE;
        }
        if current.removals != removals {
            // Another thread has replaced or removed the listener since: the later call counts.
            return SK_OK;
        }
        match register() {
            Ok(subscription) => {
                current.subscription = Some(subscription);
                SK_OK
            }
            Err(error) => error_result(&error),
        }
    }

    /// Removes the listener, waits until the listener has returned, and returns the number of removals. During the wait the
    /// lock is free, so a running listener may set a new listener.
    fn remove_listener(&self) -> u64 {
        let mut current = self.listener();
        current.removals += 1;
        let (old, removals) = (current.subscription.take(), current.removals);
        drop(current);
        if let Some(old) = old {
            old.stop();
        }
        removals
    }

    /// Gives a held seat back in the background, and removes the listener. The release comes first: a listener may wait for
    /// the next change in `sk_seat_wait`, and the release is a change.
    fn free(&self) {
        self.listener().is_freed = true;
        let _ = self.release(Duration::ZERO);
        self.remove_listener();
    }

    fn listener(&self) -> MutexGuard<'_, Listener> {
        self.listener.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn json(&self) -> String {
        let (state, seats) = (self.seat.state(), self.seat.seats());
        let loss = if let State::Lost(loss) = &state { Some(loss) } else { None };
        let json = json!({
            "state": state.name(),
            "reason": loss.map(|loss| loss.reason.name()),
            "by": loss.and_then(|loss| loss.by.as_deref()),
            "retry": loss.map(|loss| loss.retry),
            "request_id": loss.and_then(|loss| loss.request_id.as_deref()),
            "session_id": self.seat.session_id(),
            "license_id": self.seat.license_id(),
            "instance_id": self.seat.instance_id(),
            "seats_used": seats.map(|(used, _)| used),
            "seats_total": seats.map(|(_, total)| total),
            "warning": self.seat.state_dir_error().map(ToString::to_string),
        });
        json.to_string()
    }
}

/// Returns the health of the seat, at the price of one reading of a clock.
#[unsafe(no_mangle)]
pub extern "C" fn sk_seat_check(seat: *const SkSeat) -> i32 {
    guard(SK_INTERNAL, || match SEATS.with(seat.addr(), |seat| check_result(&seat.seat.health())) {
        Ok(result) => result,
        Err(bad) => bad.result(),
    })
}

/// Writes the state of this instant.
///
/// # Safety
///
/// `state` is null or points to a writable struct whose `size` is right.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sk_seat_state(seat: *const SkSeat, state: *mut SkState) -> i32 {
    guard(SK_INTERNAL, || match SEATS.with(seat.addr(), Seat::state) {
        Ok(now) => {
            // SAFETY: the contract of this function.
            if unsafe { memory::write_struct(&now, state) }.is_ok() { SK_OK } else { SK_MISUSE }
        }
        Err(bad) => bad.result(),
    })
}

/// Waits for the next change of the state, and writes the state.
///
/// # Safety
///
/// `state` is null or points to a writable struct whose `size` is right.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sk_seat_wait(seat: *mut SkSeat, timeout_ms: u32, state: *mut SkState) -> i32 {
    guard(SK_INTERNAL, || match SEATS.get(seat.addr()) {
        Ok(seat) => {
            // A wrong struct is refused before the wait.
            // SAFETY: the contract of this function.
            if !state.is_null() && unsafe { memory::write_struct(&seat.state(), state) }.is_err() {
                return SK_MISUSE;
            }
            let result = seat.wait(timeout_ms);
            if !state.is_null() {
                // SAFETY: the contract of this function.
                let _ = unsafe { memory::write_struct(&seat.state(), state) };
            }
            result
        }
        Err(bad) => bad.result(),
    })
}

/// Sets the function to call for each change of the state; null removes the function.
///
/// # Safety
///
/// `on_change` may be called with `context` from another thread, until the function is replaced or the seat is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sk_seat_on_change(
    seat: *mut SkSeat,
    on_change: SkOnChange,
    context: *mut c_void,
) -> i32 {
    guard(SK_INTERNAL, || match SEATS.get(seat.addr()) {
        Ok(seat) => {
            let Some(function) = on_change else {
                seat.remove_listener();
                return SK_OK;
            };
            // SAFETY: the contract of this function: `function` may be called with `context` until `remove_listener`, which
            // waits for the end of a call, replaces it or the seat is freed.
            let callback = unsafe { Callback::new(function, context) };
            seat.listen(callback)
        }
        Err(bad) => bad.result(),
    })
}

/// Notes that the user did something.
#[unsafe(no_mangle)]
pub extern "C" fn sk_seat_activity(seat: *mut SkSeat) -> i32 {
    guard(SK_INTERNAL, || match SEATS.with(seat.addr(), |seat| seat.seat.activity()) {
        Ok(()) => SK_OK,
        Err(bad) => bad.result(),
    })
}

/// Gives the seat back, and waits for the server for at most `timeout_ms`.
#[unsafe(no_mangle)]
pub extern "C" fn sk_seat_release(seat: *mut SkSeat, timeout_ms: u32) -> i32 {
    guard(SK_INTERNAL, || match SEATS.get(seat.addr()) {
        Ok(seat) => seat.release(Duration::from_millis(timeout_ms.into())),
        Err(bad) => bad.result(),
    })
}

/// Stops the heartbeats without a release.
#[unsafe(no_mangle)]
pub extern "C" fn sk_seat_leave(seat: *mut SkSeat) -> i32 {
    guard(SK_INTERNAL, || match SEATS.get(seat.addr()) {
        Ok(seat) => seat.leave(),
        Err(bad) => bad.result(),
    })
}

/// Frees the seat, and gives a held seat back in the background. Waits for a call of the listener that another thread runs.
#[unsafe(no_mangle)]
pub extern "C" fn sk_seat_free(seat: *mut SkSeat) {
    guard((), || {
        if let Ok(seat) = SEATS.remove(seat.addr()) {
            seat.free();
        }
    });
}

/// Writes the seat as a JSON object, as much as fits, and returns the length of the whole text; negative for a bad handle.
///
/// # Safety
///
/// `out` points to `capacity` writable bytes, or `capacity` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sk_seat_json(seat: *const SkSeat, out: *mut c_char, capacity: usize) -> i32 {
    guard(SK_INTERNAL, || {
        if out.is_null() && capacity > 0 {
            return SK_MISUSE;
        }
        match SEATS.with(seat.addr(), Seat::json) {
            Ok(json) => {
                // SAFETY: the contract of this function.
                unsafe { memory::store_text(&json, out, capacity) };
                i32::try_from(json.len()).unwrap_or(i32::MAX)
            }
            Err(bad) => bad.result(),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::ptr;
    use std::sync::mpsc::{RecvTimeoutError, channel};
    use std::thread;

    use seatkeeper_client::blocking::Client;
    use tokio::runtime::Runtime;

    use super::*;
    use crate::scripted::{Reply, Scripted};

    const GRANT: &str = r#"{"session_id":"0198a0aa-0000-7000-8000-000000000001","expires_in_seconds":360}"#;
    const REVOKED: &str = r#"{"type":"/problems/session-ended","reason":"revoked"}"#;

    /// A call without a wait returns within this time.
    const AT_ONCE: Duration = Duration::from_millis(200);
    /// The longest wait of a passing test.
    const IN_TIME: Duration = Duration::from_secs(20);

    unsafe extern "C" fn ignore(_state: *const SkState, _context: *mut c_void) {}

    /// Returns a seat whose session the server ends at the first heartbeat, with the client and the server.
    fn held(runtime: &Runtime) -> (Scripted, Client, Arc<Seat>) {
        let server = runtime.block_on(Scripted::start(|request, _| match request.target.split(' ').next() {
            Some("POST") => Reply::new(201, GRANT),
            Some("PATCH") => Reply::new(410, REVOKED),
            _ => Reply::new(204, ""),
        }));
        let client = Client::builder(&server.url).token("t").event_streams(false).build().unwrap();
        let seat = Arc::new(Seat::new(client.license("K").machine("m").acquire().unwrap()));
        (server, client, seat)
    }

    /// Returns a seat ended by the server: a registration calls the function at once.
    fn lost(runtime: &Runtime) -> (Scripted, Client, Arc<Seat>) {
        let (server, client, seat) = held(runtime);
        client.wake();
        while !matches!(seat.seat.state(), State::Lost(_)) {
            assert_eq!(seat.wait(20_000), SK_OK);
        }
        (server, client, seat)
    }

    #[test]
    fn a_seat_that_is_freed_takes_no_listener() {
        let runtime = Runtime::new().unwrap();
        let (_server, _client, seat) = held(&runtime);
        // SAFETY: `ignore` reads neither argument.
        let callback = || unsafe { Callback::new(ignore, ptr::null_mut()) };
        assert_eq!(seat.listen(callback()), SK_OK);
        seat.free();
        assert_eq!(seat.listen(callback()), SK_MISUSE, "a call that had the seat before the free");
        assert!(seat.listener().subscription.is_none());
    }

    /// Another thread frees the seat before the registration returns.
    #[test]
    fn a_free_waits_for_a_call_that_the_registration_began() {
        let runtime = Runtime::new().unwrap();
        let (_server, _client, seat) = lost(&runtime);
        let ((enter, entered), (permit, permits)) = (channel(), channel::<()>());
        let listener = move |_| {
            enter.send(()).unwrap();
            // A failed test gives no permit.
            let _ = permits.recv();
        };
        let ((freed, frees), freeing) = (channel(), seat.clone());
        let result = seat.replace_listener(|| {
            let subscription = seat.seat.on_change(listener);
            entered.recv_timeout(IN_TIME).unwrap();
            thread::spawn(move || {
                freeing.free();
                freed.send(()).unwrap();
            });
            assert_eq!(
                frees.recv_timeout(AT_ONCE),
                Err(RecvTimeoutError::Timeout),
                "the free has not waited"
            );
            subscription
        });
        assert_eq!(result, SK_OK);
        assert_eq!(frees.recv_timeout(AT_ONCE), Err(RecvTimeoutError::Timeout), "the call is in progress");
        permit.send(()).unwrap();
        frees.recv_timeout(IN_TIME).unwrap();
    }

    #[test]
    fn a_call_that_the_registration_began_may_free_the_seat() {
        let runtime = Runtime::new().unwrap();
        let (_server, _client, seat) = lost(&runtime);
        let ((enter, entered), (freed, frees), freeing) = (channel(), channel(), seat.clone());
        let listener = move |_| {
            enter.send(()).unwrap();
            freeing.free();
            freed.send(()).unwrap();
        };
        let result = seat.replace_listener(|| {
            let subscription = seat.seat.on_change(listener);
            entered.recv_timeout(IN_TIME).unwrap();
            subscription
        });
        assert_eq!(result, SK_OK);
        frees.recv_timeout(IN_TIME).unwrap();
        assert!(seat.listener().subscription.is_none());
    }
}
