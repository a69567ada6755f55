//! Work that goes on behind the requests: one file for each task. To add a worker, implement [`Worker`](crate::Worker) and
//! start it in `running`.

mod drain;
mod drain_alone;
mod flush;
mod keep_clock;
mod reconcile;
mod recorder;
mod sweep;

pub(crate) use drain::Drain;
pub use drain::OnRecorded;
pub(crate) use drain_alone::DrainAlone;
pub(crate) use flush::Flush;
pub(crate) use keep_clock::KeepClock;
pub(crate) use reconcile::Reconcile;
pub(crate) use recorder::Recorder;
pub(crate) use sweep::Sweep;
pub use sweep::sweep_due;
