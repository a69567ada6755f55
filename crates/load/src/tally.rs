//! What was measured so far.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::{Asked, Failure};

/// Longer answers count as this long: a request is given up well before.
const LATENCY_MICROS_MAX: u64 = 60_000_000;

const LATENCY_DIGITS: u8 = 3;

/// A kind of request, told apart by what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// An acquire that was granted.
    Acquire,
    /// An acquire that found the license full.
    Denied,
    /// A heartbeat.
    Heartbeat,
    /// A release.
    Release,
    /// An admission of a device for which another one had to go.
    Eviction,
    /// A fixed request.
    Fixed,
}

impl Operation {
    /// The operation's name in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Acquire => "acquire",
            Self::Denied => "denied",
            Self::Heartbeat => "heartbeat",
            Self::Release => "release",
            Self::Eviction => "eviction",
            Self::Fixed => "fixed",
        }
    }
}

/// Counts and latencies of one run.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) requests: u64,
    pub(crate) latencies: BTreeMap<Operation, Latencies>,
    pub(crate) errors: BTreeMap<String, u64>,
}

impl Tally {
    /// A request was answered as it may be.
    pub(crate) fn answered(&mut self, operation: Operation, asked: Asked) {
        self.requests += 1;
        self.latencies.entry(operation).or_default().record(asked.answered.since(asked.sent));
    }

    /// A request was answered with a status that it may not have here.
    pub(crate) fn unexpected(&mut self, status: u16) {
        self.requests += 1;
        *self.errors.entry(status.to_string()).or_default() += 1;
    }

    /// A request was not answered.
    pub(crate) fn failed(&mut self, failure: &Failure) {
        self.requests += 1;
        *self.errors.entry(failure.as_str().to_owned()).or_default() += 1;
    }

    pub(crate) fn errors_total(&self) -> u64 {
        self.errors.values().sum()
    }
}

/// Latencies in microseconds.
pub(crate) struct Latencies(Histogram<u64>);

impl Latencies {
    fn record(&mut self, latency: Duration) {
        self.0.saturating_record(latency.as_micros() as u64);
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    /// The latency that `quantile` (0 to 1) of the requests did not exceed.
    pub(crate) fn at(&self, quantile: f64) -> Duration {
        Duration::from_micros(self.0.value_at_quantile(quantile))
    }

    pub(crate) fn mean(&self) -> Duration {
        Duration::from_micros(self.0.mean() as u64)
    }
}

impl Default for Latencies {
    fn default() -> Self {
        #[expect(clippy::expect_used, reason = "the bounds are constants that are in range")]
        let histogram =
            Histogram::new_with_bounds(1, LATENCY_MICROS_MAX, LATENCY_DIGITS).expect("constants in range");
        Self(histogram)
    }
}
