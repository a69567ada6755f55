//! The Rust client: takes a seat of a license, keeps it with heartbeats, and tells its loss.
//!
//! The state machine of `seatkeeper-client-core` decides; this crate brings the clocks, the HTTP client and one task for all
//! seats of a [`Client`]. The crate installs no signal handler, prints nothing, and reads neither the environment nor
//! unnamed files.

mod builder;
mod client;
mod clock;
mod driver;
mod error;
mod license_key;
mod license_tokens;
mod machine_id;
mod seat;
mod servers;
mod shared;
mod tokens;
mod transport;
mod wire;

pub use builder::ClientBuilder;
pub use client::{Client, SeatRequest};
pub use error::{CheckError, Error};
pub use license_key::LicenseKey;
pub use machine_id::{MachineId, MachineIdError};
pub use seat::Seat;
pub use seatkeeper_client_core::{
    Deadline, Failure, FieldError, Finish, Holder, Loss, LossReason, MaskedKey, Problem, State, Wait,
};
pub use tokens::TokenError;
