//! The seat that a holder asks for.

use std::time::Duration;

use serde_json::{Map, Value};

/// The request of a holder: a seat of a license for a machine, and how long to try.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The license's key.
    pub license_key: String,
    /// The machine, by a name that stays the same.
    pub machine_id: String,
    /// The process on the machine, for licenses that count processes.
    pub instance_id: Option<String>,
    /// The program's name for itself, for the audit log.
    pub user_agent: Option<String>,
    /// An object of the program's own, for the audit log.
    pub metadata: Option<Map<String, Value>>,
    /// How long to ask again while every seat is in use.
    pub wait: Wait,
    /// How long to try a server that does not answer; a longer `wait` prevails.
    pub patience: Duration,
}

/// How long an acquire goes on while every seat is in use.
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
    pub fn new(license_key: impl Into<String>, machine_id: impl Into<String>) -> Self {
        Self {
            license_key: license_key.into(),
            machine_id: machine_id.into(),
            instance_id: None,
            user_agent: None,
            metadata: None,
            wait: Wait::No,
            patience: PATIENCE,
        }
    }
}
