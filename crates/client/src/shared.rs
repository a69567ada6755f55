//! The state of one seat, shared by driver and program.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use seatkeeper_client_core::{Deadline, Loss, LossReason, Machine, State};
use tokio::sync::Notify;

#[cfg(feature = "blocking")]
use self::audience::Audience;
#[cfg(feature = "blocking")]
pub(crate) use self::audience::RelayId;
pub use self::changes::{NoMoreChanges, StateChanges};
use crate::clock;

#[cfg(feature = "blocking")]
mod audience;
mod changes;

/// Names a seat within its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SeatKey(pub u64);

/// The session of a seat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Session {
    pub id: Option<Arc<str>>,
    pub license_id: Option<Arc<str>>,
    pub seats: Option<(u32, u32)>,
}

/// The standing of a seat while the program may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// The server confirmed the seat lately.
    Active,
    /// The server does not answer, and the seat is still held.
    Offline,
    /// The deadline has passed in an outage, and the vendor lets the program go on.
    Grace,
}

/// The low bits of [`Shared::valid_until`], which hold the health.
const HEALTH_BITS: u32 = 2;

/// The reason of a loss by the end of the driver: the runtime has shut down, or the driver has panicked.
const CLIENT_ENDED: &str = "client_ended";

/// One seat's state, written by the driver alone.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The end of validity on the `boot` clock in milliseconds, above [`HEALTH_BITS`] for the health; 0 is invalid.
    valid_until: AtomicU64,
    /// The last activity of the user on the `boot` clock, in milliseconds; 0 without an activity.
    active_at: AtomicU64,
    /// Wakes everyone who waits for a change: the acquire, and receivers.
    changed: Notify,
    seat: Mutex<SeatState>,
}

/// The driver's handle of a seat's state. The drop ends the seat, because no driver sends heartbeats any more.
#[derive(Debug)]
pub(crate) struct Publisher(Arc<Shared>);

impl Publisher {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }
}

impl Deref for Publisher {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The part of a seat's state behind a lock.
#[derive(Debug)]
struct SeatState {
    state: State,
    session: Session,
    /// The number of changes that the program was told.
    changes: u32,
    /// The driver has forgotten the seat, so no change follows.
    is_over: bool,
    #[cfg(feature = "blocking")]
    audience: Audience,
}

impl SeatState {
    /// Counts a change, and tells the listeners.
    fn tell(&mut self) {
        self.changes = self.changes.wrapping_add(1);
        #[cfg(feature = "blocking")]
        self.audience.tell(&self.state);
    }
}

impl Shared {
    pub(crate) fn new() -> Self {
        let seat = SeatState {
            state: State::Acquiring,
            session: Session::default(),
            changes: 0,
            is_over: false,
            #[cfg(feature = "blocking")]
            audience: Audience::default(),
        };
        Self {
            valid_until: AtomicU64::new(0),
            active_at: AtomicU64::new(0),
            changed: Notify::new(),
            seat: Mutex::new(seat),
        }
    }

    fn seat(&self) -> MutexGuard<'_, SeatState> {
        self.seat.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes a state; `is_told` wakes everyone who watches.
    pub(crate) fn publish(&self, state: State, is_told: bool) {
        let valid_until = match &state {
            State::Active { until } => pack(*until, Health::Active),
            State::Offline { until, .. } => pack(*until, Health::Offline),
            State::Grace { until } => pack(*until, Health::Grace),
            State::Acquiring | State::Reacquiring | State::Lost(_) | State::Refused(_) | State::Released => 0,
        };
        self.valid_until.store(valid_until, Ordering::Release);
        let mut seat = self.seat();
        seat.state = state;
        if is_told {
            seat.tell();
        }
        // A woken program may ask for the state at once.
        drop(seat);
        if is_told {
            self.changed.notify_waiters();
        }
    }

    /// Publishes the last state of a seat. A driver that ends without `Command::Close` has released no seat: a held seat is
    /// lost, and an acquire in flight ends by [`State::Released`].
    fn end(&self) {
        let last = match &self.seat().state {
            State::Acquiring => Some(State::Released),
            State::Active { .. } | State::Offline { .. } | State::Grace { .. } | State::Reacquiring => {
                let reason = LossReason::Other(CLIENT_ENDED.into());
                Some(State::Lost(Loss { reason, by: None, retry: false, request_id: None }))
            }
            State::Lost(loss) if loss.retry => Some(State::Lost(Loss { retry: false, ..loss.clone() })),
            State::Lost(_) | State::Refused(_) | State::Released => None,
        };
        if let Some(last) = last {
            self.publish(last, true);
        }
        self.end_changes();
    }

    /// Notes that no change follows.
    fn end_changes(&self) {
        self.seat().is_over = true;
        #[cfg(feature = "blocking")]
        self.drop_relays();
        self.changed.notify_waiters();
    }

    /// Waits until the acquire has its result, and returns the state.
    pub(crate) async fn acquired(&self) -> State {
        loop {
            // Made before the state is read, so that no change in between is missed.
            let changed = self.changed.notified();
            let state = self.seat().state.clone();
            if !matches!(state, State::Acquiring) {
                return state;
            }
            changed.await;
        }
    }

    /// Notes an activity of the user. Lock-free.
    pub(crate) fn note_activity(&self) {
        self.active_at.fetch_max(milliseconds(clock::boot()).max(1), Ordering::Relaxed);
    }

    /// Returns the last activity of the user.
    pub(crate) fn active_at(&self) -> Option<Deadline> {
        let at = self.active_at.load(Ordering::Relaxed);
        (at > 0).then(|| Deadline::from_boot(Duration::from_millis(at)))
    }

    /// Notes the session of a machine, while the machine has one.
    pub(crate) fn note_session(&self, machine: &Machine) {
        let Some(id) = machine.session() else { return };
        let (id, license_id) = (Some(id.clone()), machine.license_id().cloned());
        self.seat().session = Session { id, license_id, seats: machine.seats() };
    }

    pub(crate) fn session(&self) -> Session {
        self.seat().session.clone()
    }

    /// Returns the health while the program may go on. Lock-free.
    pub(crate) fn health(&self) -> Option<Health> {
        let packed = self.valid_until.load(Ordering::Acquire);
        (milliseconds(clock::boot()) < packed >> HEALTH_BITS).then(|| unpack(packed))
    }

    /// Returns the time until the program may no longer go on. Lock-free.
    pub(crate) fn remaining(&self) -> Duration {
        let until = self.valid_until.load(Ordering::Acquire) >> HEALTH_BITS;
        Duration::from_millis(until.saturating_sub(milliseconds(clock::boot())))
    }

    /// Returns the state of this instant: `Active` ends by itself at its deadline.
    pub(crate) fn state(&self) -> State {
        let state = self.seat().state.clone();
        if let State::Active { until } = state
            && has_passed(until)
        {
            return State::Offline { since: until, until };
        }
        state
    }
}

fn pack(until: Deadline, health: Health) -> u64 {
    let health = match health {
        Health::Active => 0,
        Health::Offline => 1,
        Health::Grace => 2,
    };
    milliseconds(until.boot()).min(u64::MAX >> HEALTH_BITS) << HEALTH_BITS | health
}

fn unpack(packed: u64) -> Health {
    match packed & ((1 << HEALTH_BITS) - 1) {
        0 => Health::Active,
        1 => Health::Offline,
        _ => Health::Grace,
    }
}

fn has_passed(deadline: Deadline) -> bool {
    clock::boot() >= deadline.boot()
}

fn milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
