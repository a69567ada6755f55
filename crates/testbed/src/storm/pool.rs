//! The pools of a storm, and the clients' access to them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use seatkeeper_load::api::{self, Naming, SessionCalls};
use seatkeeper_load::{Call, Error, FixedRequest, Target};

/// A pool without other users.
#[derive(Clone, Debug)]
pub struct Pool {
    /// The API for clients.
    pub door: Door,
    /// The largest number of seats at any time.
    pub seats: u32,
    /// The TTL, in whole seconds: a few, because the storm waits for it at its end.
    pub ttl: Duration,
    /// The operator who changes the limit meanwhile.
    pub operator: Option<Operator>,
}

/// The API used by clients, with their credentials.
#[derive(Clone)]
pub enum Door {
    /// The licenses API: the key of a license counted per machine.
    Licenses {
        /// The key.
        key: String,
    },
    /// The devices API.
    Devices {
        /// The server with the subscriber's token.
        subscriber: Target,
        /// Devices renew their sessions. Otherwise the last sign of life of a device is its admission.
        renew: bool,
    },
}

/// An operator who changes a pool's limit during rounds.
#[derive(Clone, Debug)]
pub struct Operator {
    /// The server with the operator's token.
    pub target: Target,
    /// Changes to choose from, valid at any time. None exceeds the pool's `seats`.
    pub changes: Vec<FixedRequest>,
    /// The changes at the end, which restore the pool's seats and let it deny a newcomer on a full pool.
    pub settled: Vec<FixedRequest>,
}

impl Door {
    /// Returns the request of `holder` for a seat. Only a device can name a session.
    pub(super) fn claim(&self, target: &Target, holder: &str, naming: Naming<'_>) -> Result<Call, Error> {
        match self {
            Self::Licenses { key } => api::acquire_call(target, key, holder),
            Self::Devices { subscriber, .. } => api::admit_call(subscriber, holder, naming),
        }
    }

    pub(super) fn session(&self, target: &Target, session: Arc<str>) -> Result<SessionCalls, Error> {
        match self {
            Self::Licenses { .. } => SessionCalls::new(target, session),
            Self::Devices { subscriber, .. } => SessionCalls::of_device(subscriber, session),
        }
    }

    /// Returns whether only its holder and time can end a session.
    pub(super) fn keeps_sessions(&self) -> bool {
        match self {
            Self::Licenses { .. } => true,
            Self::Devices { .. } => false,
        }
    }
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Licenses { key: _ } => f.debug_struct("Licenses").finish_non_exhaustive(),
            Self::Devices { subscriber: _, renew } => {
                f.debug_struct("Devices").field("renew", renew).finish_non_exhaustive()
            }
        }
    }
}
