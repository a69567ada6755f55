//! Background workers, a file for each. To add a worker, implement [`Worker`](crate::Worker) and start it in
//! `running`.

mod drain;
mod fill_lasting;
mod flush;
mod keep_clock;
mod keep_sole_use;
mod node_local_drain;
mod reconcile;
mod sweep;
mod watch_clocks;

pub use drain::OnRecorded;
pub(crate) use drain::{Drain, Refusals};
pub(crate) use fill_lasting::FillLasting;
pub(crate) use flush::Flush;
pub(crate) use keep_clock::KeepClock;
pub(crate) use keep_sole_use::KeepSoleUse;
pub(crate) use node_local_drain::NodeLocalDrain;
pub(crate) use reconcile::Reconcile;
pub(crate) use sweep::Sweep;
pub use sweep::sweep_due;
pub(crate) use watch_clocks::WatchClocks;
