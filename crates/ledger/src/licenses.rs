//! Licenses: the seat limits of license pools.
//!
//! Each change of a license raises its version by one, and appends a record to the entitlement stream of the
//! license's pool in the same transaction. Licenses are never deleted.

mod adopt;
mod change;
mod create;
mod key;
mod license;
mod read;
mod state;
mod update;
mod write;

pub(crate) use adopt::adopt;
pub use change::LicenseChange;
pub use create::NewLicense;
pub use key::LicenseKey;
pub use license::{Clients, CountPer, License, LicenseId, Reacquire, Status};
