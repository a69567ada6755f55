//! The seat that a holder asks for.

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::mask::MaskedKey;

/// The request of a holder: a seat of a license for a machine, and how long to try. `Debug` shows the end of the key alone.
#[derive(Clone)]
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

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { license_key, machine_id, instance_id, user_agent, metadata, wait, patience } = self;
        f.debug_struct("Plan")
            .field("license_key", &MaskedKey(license_key))
            .field("machine_id", machine_id)
            .field("instance_id", instance_id)
            .field("user_agent", user_agent)
            .field("metadata", metadata)
            .field("wait", wait)
            .field("patience", patience)
            .finish()
    }
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
