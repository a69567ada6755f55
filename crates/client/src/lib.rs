//! The Rust client: takes a seat of a license or the screen of a device, keeps it with heartbeats, and tells its loss.
//!
//! The state machine of `seatkeeper-client-core` decides; this crate brings the clocks, the HTTP client and one task for all
//! seats of a [`Client`]. The crate installs no signal handler, prints nothing, and reads neither the environment nor
//! unnamed files, except for [`SeatRequest::per_process`].
//!
//! # Licenses that count processes
//!
//! [`SeatRequest::per_process`] names a process by a slot of the [`StateDir`]: a process that was killed and is started again
//! holds its old seat at once, and two processes never share a name. Without a usable directory the seat is held all the
//! same, and [`Seat::state_dir_error`] tells the reason.
//!
//! # The blocking client
//!
//! The feature `blocking` adds the module `blocking`, for programs without a Tokio runtime.

#[cfg(feature = "blocking")]
pub mod blocking;
mod builder;
mod client;
mod clock;
mod device;
mod driver;
mod error;
mod events;
mod license_key;
mod license_tokens;
mod machine_id;
mod poll;
mod remedy;
mod resolver;
#[cfg(test)]
#[path = "../tests/scripted/mod.rs"]
mod scripted;
mod seat;
mod servers;
mod shared;
mod slot;
mod sse;
mod state_dir;
mod token_keeper;
mod token_text;
mod tokens;
mod transport;
mod wire;
mod worker;

pub use builder::ClientBuilder;
pub use client::{Client, SeatRequest};
pub use device::DeviceRequest;
pub use error::{CheckError, Error};
pub use license_key::LicenseKey;
pub use machine_id::{MachineId, MachineIdError};
pub use seat::Seat;
pub use seatkeeper_client_core::{
    Deadline, DeviceSession, DeviceType, Failure, FieldError, Finish, Holder, Loss, LossReason, MaskedKey,
    Problem, State, Wait,
};
pub use shared::{Health, NoMoreChanges, StateChanges};
pub use state_dir::{StateDir, StateDirError};
pub use tokens::TokenError;
