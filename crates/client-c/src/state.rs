//! The state of a seat in C.

use std::ffi::{CStr, c_char};
use std::mem::{offset_of, size_of};
use std::time::Duration;

use seatkeeper_client::State;

use crate::codes::{REASONS, reason_number, state_number};
use crate::memory::Growing;

/// `sk_state`: the state of a seat at one instant.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SkState {
    /// The size of the struct that the caller knows.
    pub size: u32,
    /// The state: `SK_STATE_…`.
    pub kind: i32,
    /// The reason of a loss: `SK_REASON_…`; 0 in other states.
    pub reason: i32,
    /// 1 if a lost seat is being acquired again; 0 otherwise.
    pub retry: i32,
    /// The milliseconds until the program may no longer go on without a word of the server.
    pub remaining_ms: u64,
}

// SAFETY: `repr(C)` with the size first, numbers alone. 4 times 4 bytes and 8 bytes have no padding.
unsafe impl Growing for SkState {
    const NAME: &'static str = "sk_state";
    const SIZE_MIN: usize = offset_of!(SkState, reason);
}

impl SkState {
    /// Returns the state in C.
    pub(crate) fn new(state: &State, remaining: Duration) -> Self {
        let loss = if let State::Lost(loss) = state { Some(loss) } else { None };
        Self {
            size: size_of::<Self>() as u32,
            kind: state_number(state),
            reason: loss.map_or(0, |loss| reason_number(&loss.reason)),
            retry: loss.is_some_and(|loss| loss.retry).into(),
            remaining_ms: u64::try_from(remaining.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// Returns the name of a reason, such as `revoked`; an empty text for 0, and `other` for a number of a later version.
#[unsafe(no_mangle)]
pub extern "C" fn sk_reason_name(reason: i32) -> *const c_char {
    let place = usize::try_from(reason).ok().and_then(|place| REASONS.get(place));
    let name: &CStr = place.map_or(c"other", |(name, _)| name);
    name.as_ptr()
}
