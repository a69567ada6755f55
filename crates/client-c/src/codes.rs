//! The numbers of the interface, as in `include/seatkeeper.h`: results, states and reasons of a loss.

use seatkeeper_client::{CheckError, Error, Finish, Health, LossReason, State};

/// The call succeeded; the seat is held.
pub const SK_OK: i32 = 0;
/// The server does not answer, and the seat is still held.
pub const SK_OFFLINE: i32 = 1;
/// The deadline has passed in an outage, and the vendor lets the program go on.
pub const SK_GRACE: i32 = 2;
/// The state has not changed within the time.
pub const SK_TIMEOUT: i32 = 3;
/// The seat is lost.
pub const SK_LOST: i32 = -1;
/// The server has not confirmed the seat, or its release.
pub const SK_UNCONFIRMED: i32 = -2;
/// The program gave the seat up.
pub const SK_RELEASED: i32 = -3;
/// The server refused.
pub const SK_DENIED: i32 = -4;
/// The server gave no usable answer in time.
pub const SK_UNREACHABLE: i32 = -5;
/// Another thread cancelled the acquire.
pub const SK_CANCELLED: i32 = -6;
/// The client is closed.
pub const SK_CLOSED: i32 = -7;
/// An argument is wrong.
pub const SK_MISUSE: i32 = -8;
/// The handle belongs to another process: the parent of a forked child.
pub const SK_NOT_OWNER: i32 = -9;
/// The library failed.
pub const SK_INTERNAL: i32 = -10;
/// The machine has no id.
pub const SK_NO_MACHINE_ID: i32 = -11;

/// The longest wait: without an end.
pub const SK_FOREVER: u32 = u32::MAX;

/// No event streams: the next heartbeat tells the end of a seat.
pub const SK_NO_EVENT_STREAMS: u32 = 1;

/// A flag of `sk_request`: a slot of the state directory names the process.
pub const SK_PER_PROCESS: u32 = 1;

/// The number of [`State::Active`].
pub const SK_STATE_ACTIVE: i32 = 1;
/// The number of [`State::Offline`].
pub const SK_STATE_OFFLINE: i32 = 2;
/// The number of [`State::Grace`].
pub const SK_STATE_GRACE: i32 = 3;
/// The number of [`State::Reacquiring`].
pub const SK_STATE_REACQUIRING: i32 = 4;
/// The number of [`State::Lost`].
pub const SK_STATE_LOST: i32 = 5;
/// The number of [`State::Released`].
pub const SK_STATE_RELEASED: i32 = 6;

/// The names of the reasons of a loss. The place of a name is its number in C; 0 is no reason.
pub(crate) const REASONS: [(&std::ffi::CStr, &str); 14] = [
    (c"", ""),
    (c"deadline", "deadline"),
    (c"unauthorized", "unauthorized"),
    (c"not_found", "not_found"),
    (c"expired", "expired"),
    (c"evicted", "evicted"),
    (c"superseded", "superseded"),
    (c"upgraded", "upgraded"),
    (c"revoked", "revoked"),
    (c"idle", "idle"),
    (c"entitlement_ended", "entitlement_ended"),
    (c"released", "released"),
    (c"ended", "ended"),
    (c"other", "other"),
];

/// Returns the number of a state. A handle exists after the acquire alone, so `Acquiring` and `Refused` do not occur.
pub(crate) fn state_number(state: &State) -> i32 {
    match state {
        State::Active { .. } => SK_STATE_ACTIVE,
        State::Offline { .. } => SK_STATE_OFFLINE,
        State::Grace { .. } => SK_STATE_GRACE,
        State::Acquiring | State::Reacquiring => SK_STATE_REACQUIRING,
        State::Lost(_) => SK_STATE_LOST,
        State::Refused(_) | State::Released => SK_STATE_RELEASED,
    }
}

/// Returns the number of the reason of a loss.
pub(crate) fn reason_number(reason: &LossReason) -> i32 {
    let number = match reason {
        LossReason::Deadline => 1,
        LossReason::Unauthorized => 2,
        LossReason::NotFound => 3,
        LossReason::Expired => 4,
        LossReason::Evicted => 5,
        LossReason::Superseded => 6,
        LossReason::Upgraded => 7,
        LossReason::Revoked => 8,
        LossReason::Idle => 9,
        LossReason::EntitlementEnded => 10,
        LossReason::Released => 11,
        LossReason::Ended => 12,
        LossReason::Other(_) => 13,
    };
    debug_assert!(reason.name() == REASONS[number as usize].1 || number == 13);
    number
}

/// Returns the result of a check.
pub(crate) fn check_result(health: &Result<Health, CheckError>) -> i32 {
    match health {
        Ok(Health::Active) => SK_OK,
        Ok(Health::Offline) => SK_OFFLINE,
        Ok(Health::Grace) => SK_GRACE,
        Err(CheckError::Lost(_)) => SK_LOST,
        Err(CheckError::Unconfirmed) => SK_UNCONFIRMED,
        Err(CheckError::Released) => SK_RELEASED,
    }
}

/// Returns the result of a release.
pub(crate) fn finish_result(finish: &Result<Finish, Error>) -> i32 {
    match finish {
        Ok(Finish::GivenBack) => SK_OK,
        Ok(Finish::Unconfirmed) => SK_UNCONFIRMED,
        Err(error) => error_result(error),
    }
}

/// Returns the result for an error of the client.
pub(crate) fn error_result(error: &Error) -> i32 {
    match error {
        Error::Denied(_) => SK_DENIED,
        // Without authorities, every certificate is that of an unknown authority.
        Error::Offline { .. } | Error::NoAuthorities(_) => SK_UNREACHABLE,
        Error::Cancelled => SK_CANCELLED,
        Error::Closed => SK_CLOSED,
        Error::NotOwner => SK_NOT_OWNER,
        Error::Thread(_) | Error::NoRuntime => SK_INTERNAL,
        Error::Address { .. } | Error::AddressWithUser | Error::Http(_) | Error::NoCertificate => SK_MISUSE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_number_and_its_name() {
        for (number, (_, name)) in REASONS.iter().enumerate().skip(1) {
            assert_eq!(reason_number(&LossReason::from_name(name)), number as i32, "{name}");
        }
        assert!(REASONS.iter().all(|(c, rust)| c.to_str() == Ok(rust)));
    }
}
