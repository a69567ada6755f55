//! What each connection of a run does: a file for each scenario.

mod cycle;
mod denials;
mod desk;
mod evictions;
mod fixed;
mod heartbeats;
mod held;
mod shared;

use crate::Error;
pub(crate) use cycle::Cycle;
pub(crate) use denials::Denials;
pub(crate) use desk::Desk;
pub(crate) use evictions::Evictions;
pub(crate) use fixed::Fixed;
pub(crate) use heartbeats::Heartbeats;
pub(crate) use shared::Shared;

/// One connection's part in a scenario. During its turns, what the server does wrong is counted; before
/// and after them, it is an error.
pub(crate) trait Worker: Send + 'static {
    /// Where it asks from.
    fn desk(&mut self) -> &mut Desk;

    /// Does what is not measured, before the first turn.
    fn prepare(&mut self) -> impl Future<Output = Result<(), Error>> + Send;

    /// Sends its next request, or the next few that belong together.
    fn turn(&mut self) -> impl Future<Output = Result<(), Error>> + Send;

    /// Gives back what it holds, after the last turn.
    fn finish(self) -> impl Future<Output = Result<(), Error>> + Send;
}
