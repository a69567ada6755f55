//! Measurements of a run so far.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::{Failure, RequestSpan};

/// The longest recorded latency. Requests time out well before it.
const LATENCY_MICROS_MAX: u64 = 60_000_000;

const LATENCY_DIGITS: u8 = 3;

/// A kind of request, by its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// A granted acquire.
    Acquire,
    /// An acquire denied on a full license.
    Denied,
    /// A heartbeat.
    Heartbeat,
    /// A release.
    Release,
    /// An admission of a device that evicted another device.
    Eviction,
    /// A fixed request.
    Fixed,
}

impl Operation {
    /// Returns the operation's name in reports.
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

/// Counts and latencies of a run.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) requests: u64,
    pub(crate) latencies: BTreeMap<Operation, Latencies>,
    pub(crate) errors: BTreeMap<String, u64>,
}

impl Tally {
    /// Counts a request answered as expected.
    pub(crate) fn answered(&mut self, operation: Operation, asked: RequestSpan) {
        self.requests += 1;
        self.latencies.entry(operation).or_default().record(asked.answered.since(asked.sent));
    }

    /// Counts a request answered with an unexpected status.
    pub(crate) fn unexpected(&mut self, status: u16) {
        self.requests += 1;
        *self.errors.entry(status.to_string()).or_default() += 1;
    }

    /// Counts a request without an answer.
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

    /// Returns the latency not exceeded by the share `quantile` (0 to 1) of the requests.
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
