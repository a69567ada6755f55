//! What a storm rages on.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::api::{self, Naming, SessionCalls};
use crate::call::Call;
use crate::{Error, FixedRequest, Target};

/// A pool that nobody else uses.
#[derive(Clone, Debug)]
pub struct Pool {
    /// How clients get at it.
    pub door: Door,
    /// The most seats that it ever has.
    pub seats: u32,
    /// Its TTL, in whole seconds: a few, for the storm waits for it at its end.
    pub ttl: Duration,
    /// Who changes its limit meanwhile.
    pub operator: Option<Operator>,
}

/// Which API clients go through, and what they show there.
#[derive(Clone)]
pub enum Door {
    /// The licenses API: the key of a license that is counted per machine.
    Licenses {
        /// The key.
        key: String,
    },
    /// The devices API.
    Devices {
        /// The server, asked as the subscriber.
        subscriber: Target,
        /// Whether devices renew their sessions: if not, each was last heard of when it was admitted.
        renew: bool,
    },
}

/// An operator, who changes a pool's limit in the middle of rounds.
#[derive(Clone, Debug)]
pub struct Operator {
    /// The server, asked as the operator.
    pub target: Target,
    /// Changes to choose from, each good at any time. None leaves the pool with more than its seats.
    pub changes: Vec<FixedRequest>,
    /// What gives the pool its seats again at the end, and lets it deny a newcomer when they are taken.
    pub settled: Vec<FixedRequest>,
}

impl Door {
    /// The request of `holder` for a seat. What it names only a device can say.
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

    /// Whether only its holder and time can end a session.
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
