//! Work that goes on behind the requests: one file a task, one driver for all.
//!
//! A worker reads the state as it is, does at most a batch, and says whether more is left. A
//! notification and the timer run the same code. To add one, implement `driver::Worker` and start it in
//! `start`.

mod drain;
mod drain_alone;
mod driver;
mod flush;
mod keep_clock;
mod reconcile;
mod recorder;
mod sweep;

pub(crate) use drain::Drain;
pub(crate) use drain_alone::DrainAlone;
pub(crate) use driver::{Crew, Left, Worker};
pub(crate) use flush::Flush;
pub(crate) use keep_clock::KeepClock;
pub(crate) use reconcile::Reconcile;
pub(crate) use recorder::Recorder;
pub(crate) use sweep::{Sweep, sweep_due};
