//! The seat that a holder asks for.

use std::time::Duration;

use crate::door::Door;

/// The request of a holder: a door of the server, and how long to try.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The API to ask, with the holder's description of itself.
    pub door: Door,
    /// The time to ask again while every seat is in use.
    pub wait: Wait,
    /// The time to try a server that does not answer, with at least two seconds for each try; a longer `wait` prevails.
    pub patience: Duration,
}

/// The time for which an acquire goes on while every seat is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The first denial is final.
    No,
    /// Asks again for this long.
    For(Duration),
    /// Asks again until the program gives up.
    Forever,
}

/// The default of [`Plan::patience`].
const PATIENCE: Duration = Duration::from_secs(10);

impl Plan {
    /// Returns a plan for one seat that does not wait.
    #[must_use]
    pub fn new(door: impl Into<Door>) -> Self {
        Self { door: door.into(), wait: Wait::No, patience: PATIENCE }
    }
}
