//! The holder's side of a seat: a state machine that acquires a seat, keeps it with heartbeats and tells its loss.
//!
//! [`Machine::step`] takes an [`Event`], the time and a [`Jitter`], and returns [`Action`]s for the driver to carry out.
//! The crate has no I/O, no clock, no async and no source of randomness: a driver brings these.
//! `sdk/vectors` states the behaviour for every language, and the tests of the crate play the vectors.

mod action;
mod answer;
mod door;
mod event;
mod lease;
mod machine;
mod mask;
mod plan;
mod problem;
mod request;
mod response;
mod retry;
mod state;
mod time;
mod tokens;

pub use action::{Action, Finish};
pub use door::{DeviceDoor, DeviceType, Door, LicenseDoor};
pub use event::{Event, SessionEnd};
pub use machine::Machine;
pub use mask::MaskedKey;
pub use plan::{Plan, Wait};
pub use problem::{DeviceSession, FieldError, Holder, Problem};
pub use request::{Method, Request, RequestId};
pub use response::{Failure, Response};
pub use retry::Jitter;
pub use state::{Loss, LossReason, Refusal, State};
pub use time::{Deadline, Now};
pub use tokens::TOKEN_TIMEOUT;
