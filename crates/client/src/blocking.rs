//! The client for programs without a Tokio runtime.
//!
//! One background thread serves all seats of a [`Client`], and calls block the calling thread until the answer is there. The
//! thread lives until the last handle is dropped: each clone of the client, each request and each seat is a handle. The last
//! handle gives back every seat, best effort, within two seconds.
//!
//! After a fork the handles belong to the parent, which has the thread. In the child a call that would wait for the thread
//! fails with [`Error::NotOwner`](crate::Error::NotOwner), a drop gives nothing back, and changes are over. The child builds
//! a client of its own.
//!
//! If the thread fails, every seat is lost at once with the reason `client_ended`, and calls fail with
//! [`Error::Closed`](crate::Error::Closed).
//!
//! ```no_run
//! use seatkeeper_client::blocking::Client;
//!
//! # fn main() -> Result<(), seatkeeper_client::Error> {
//! let client = Client::builder("https://seats.example").license_key("CAD-2030").build()?;
//! let seat = client.license("CAD-2030").machine("workstation-7").acquire()?;
//! if let Err(stop) = seat.check() {
//!     eprintln!("stopped: {stop}");
//! }
//! seat.release()?;
//! # Ok(())
//! # }
//! ```

mod background;
mod builder;
mod cancel;
mod changes;
mod client;
mod dispatcher;
mod listener;
mod seat;
mod subscription;
mod wait;

pub use builder::ClientBuilder;
pub use cancel::Cancel;
pub use changes::{Changes, NoChange};
pub use client::{Client, DeviceRequest, SeatRequest};
pub use seat::Seat;
pub use subscription::Subscription;
