//! The C library: a license seat for programs in C, C++ and languages that call C.
//!
//! `include/seatkeeper.h` is the reference of the interface. The blocking client of `seatkeeper-client` does the work. This
//! crate keeps three promises of its own:
//!
//! - **No handle is a pointer.** A handle is a number in a [`table`], so a freed, foreign or made-up handle is refused, and
//!   never read.
//! - **No panic leaves.** Each function of the interface runs within [`guard::guard`].
//! - **A forked child touches nothing of its parent.** A handle belongs to one process.
//!
//! Pointers of the caller are read and written in [`memory`] alone.

mod acquire;
mod callback;
mod client;
mod codes;
mod error;
mod guard;
mod machine_id;
mod memory;
mod process;
#[cfg(test)]
#[path = "../../client/tests/scripted/mod.rs"]
mod scripted;
mod seat;
mod signals;
mod state;
mod table;

pub use acquire::{SkRequest, sk_acquire, sk_acquire_cancel};
pub use callback::SkOnChange;
pub use client::{SkClient, SkOptions, sk_client_close, sk_client_open};
pub use codes::*;
pub use error::{SkError, sk_error_code, sk_error_free, sk_error_json, sk_error_message};
pub use machine_id::{SK_MACHINE_ID_SIZE, sk_machine_id};
pub use seat::{
    SkSeat, sk_seat_activity, sk_seat_check, sk_seat_free, sk_seat_json, sk_seat_leave, sk_seat_on_change,
    sk_seat_release, sk_seat_state, sk_seat_wait,
};
pub use state::{SkState, sk_reason_name};

/// The version of the interface: the major number in the upper half, the minor number in the lower half.
pub const SK_ABI_VERSION: u32 = 1 << 16 | 1;

/// Returns [`SK_ABI_VERSION`] of the library at run time.
#[unsafe(no_mangle)]
pub extern "C" fn sk_abi_version() -> u32 {
    SK_ABI_VERSION
}
