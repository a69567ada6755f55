//! What to load, how, and for how long.

use std::time::Duration;

use http::Method;

use crate::{Error, Target};

/// One run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The server.
    pub target: Target,
    /// The keys of the licenses to use, each by every so many-th worker; none where no license is used.
    pub license_keys: Vec<String>,
    /// Connections, each with one request under way at a time; at least 1.
    pub concurrency: usize,
    /// When to stop.
    pub bounds: Bounds,
    /// What each connection does.
    pub scenario: Scenario,
}

/// When a run stops: at whichever comes first. What is under way then is still waited for.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The longest it may measure.
    pub duration: Duration,
    /// The most turns that its connections may take together: a turn of a cycle is a whole cycle, any
    /// other turn one request. None: as many as fit.
    pub turns: Option<u64>,
}

/// What each connection does.
#[derive(Clone, Debug)]
pub enum Scenario {
    /// Holds seats, taken before the measurement, and renews them in turn.
    Heartbeats {
        /// Seats that each connection holds, at least 1.
        sessions_per_connection: usize,
    },
    /// Asks for seats of a license that was filled before the measurement.
    Denied,
    /// Takes a seat, renews it, gives it back, and starts over.
    Cycle {
        /// Heartbeats between acquire and release.
        heartbeats: u32,
    },
    /// Admits new devices of subscribers whose screens are all in use, by plans that evict.
    Evictions {
        /// The server, asked as each of them; at least one for each connection.
        subscribers: Vec<Target>,
    },
    /// Sends the same request over and over; nothing is checked but its status.
    Fixed(FixedRequest),
}

/// A request that knows nothing of licenses.
#[derive(Clone, Debug)]
pub struct FixedRequest {
    /// Its method.
    pub method: Method,
    /// Its path and query.
    pub path: String,
    /// Its body.
    pub body: String,
    /// The status that is not an error.
    pub status_expected: u16,
}

impl Scenario {
    /// The scenario's name in reports.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Heartbeats { .. } => "heartbeats",
            Self::Denied => "denied",
            Self::Cycle { .. } => "cycle",
            Self::Evictions { .. } => "evictions",
            Self::Fixed(_) => "fixed",
        }
    }

    const fn needs_license(&self) -> bool {
        match self {
            Self::Heartbeats { .. } | Self::Denied | Self::Cycle { .. } => true,
            Self::Evictions { .. } | Self::Fixed(_) => false,
        }
    }
}

impl Plan {
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.concurrency == 0 {
            return Err(Error::EmptyPlan { missing: "connection" });
        }
        if self.scenario.needs_license() && self.license_keys.is_empty() {
            return Err(Error::EmptyPlan { missing: "license" });
        }
        if let Scenario::Evictions { subscribers } = &self.scenario
            && subscribers.len() < self.concurrency
        {
            return Err(Error::EmptyPlan { missing: "subscriber for each connection" });
        }
        if matches!(self.scenario, Scenario::Heartbeats { sessions_per_connection: 0 }) {
            return Err(Error::EmptyPlan { missing: "session" });
        }
        Ok(())
    }
}
