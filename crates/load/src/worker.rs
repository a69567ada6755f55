//! The work of a run's connections: a file for each scenario.

mod caller;
mod cycle;
mod denials;
mod evictions;
mod fixed;
mod heartbeats;
mod held;
mod shared;

use crate::Error;
pub(crate) use caller::Caller;
pub(crate) use cycle::Cycle;
pub(crate) use denials::Denials;
pub(crate) use evictions::Evictions;
pub(crate) use fixed::Fixed;
pub(crate) use heartbeats::Heartbeats;
pub(crate) use shared::Shared;

/// A connection's part in a scenario. During turns, a server's mistakes are counted. Before and after the
/// turns, a mistake is an error.
pub(crate) trait Worker: Send + 'static {
    /// Returns the caller, which sends the requests.
    fn caller(&mut self) -> &mut Caller;

    /// Prepares the first turn. The preparation is not measured.
    fn prepare(&mut self) -> impl Future<Output = Result<(), Error>> + Send;

    /// Sends the next request, or the next requests that belong together.
    fn turn(&mut self) -> impl Future<Output = Result<(), Error>> + Send;

    /// Releases the held seats after the last turn.
    fn finish(self) -> impl Future<Output = Result<(), Error>> + Send;
}
