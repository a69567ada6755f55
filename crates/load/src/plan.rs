//! The plan of a run: the server, the scenario and the bounds. A plan is checked before the first request.

use std::time::Duration;

use http::Method;

use crate::{Error, Target};

/// A plan for one run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The server.
    pub target: Target,
    /// The keys of the licenses. With `n` keys, every `n`-th connection uses the same license. Empty for a
    /// scenario without licenses.
    pub license_keys: Vec<String>,
    /// The number of connections, at least 1. Each has one request in flight at a time.
    pub concurrency: usize,
    /// The end of the run.
    pub bounds: Bounds,
    /// The work of each connection.
    pub scenario: Scenario,
}

/// The end of a run: the bound reached first. Requests in flight are still awaited.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The longest time of measurement.
    pub duration: Duration,
    /// The most turns of all connections together; `None` for no limit. A turn of [`Scenario::Cycle`] is a
    /// whole cycle, any other turn a single request.
    pub turns: Option<u64>,
}

/// The work of each connection.
#[derive(Clone, Debug)]
pub enum Scenario {
    /// Holds seats, taken before the measurement, and renews the seats in turn.
    Heartbeats {
        /// The number of seats held by each connection, at least 1.
        sessions_per_connection: usize,
    },
    /// Asks for seats of a license that was filled before the measurement.
    Denied,
    /// Takes a seat, renews it, releases it, and starts over.
    Cycle {
        /// The number of heartbeats between acquire and release.
        heartbeats: u32,
    },
    /// Admits new devices of subscribers whose screens are all in use, by plans that evict.
    Evictions {
        /// The server with the token of each subscriber. At least one subscriber for each connection.
        subscribers: Vec<Target>,
    },
    /// Sends a fixed request over and over. Only the status is checked.
    Fixed(FixedRequest),
}

/// A request without a license.
#[derive(Clone, Debug)]
pub struct FixedRequest {
    /// The method.
    pub method: Method,
    /// The path and query.
    pub path: String,
    /// The body.
    pub body: String,
    /// The expected status. Any other status counts as an error.
    pub status_expected: u16,
}

impl Scenario {
    /// Returns the scenario's name in reports.
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
