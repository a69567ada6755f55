//! The report of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::tally::{Latencies, Tally};
use crate::{Operation, Violations};

/// The result of a run. The loop is closed: a slow answer delays the next request. Latencies are therefore
/// those of a server with `concurrency` patient clients.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The scenario's name.
    pub scenario: &'static str,
    /// The number of connections.
    pub concurrency: usize,
    /// The time of measurement, in seconds.
    pub elapsed_seconds: f64,
    /// The number of measured requests, errors included.
    pub requests: u64,
    /// The number of requests a second answered as expected.
    pub requests_per_second: f64,
    /// The number of unexpected answers by status, and of failures by name.
    pub errors: BTreeMap<String, u64>,
    /// Requests answered as expected, by operation.
    pub operations: BTreeMap<Operation, OperationReport>,
    /// Broken promises of the server.
    pub violations: ViolationsReport,
}

/// The requests of one operation.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct OperationReport {
    /// The number of requests.
    pub requests: u64,
    /// The mean latency, in milliseconds.
    pub mean_ms: f64,
    /// The median latency, in milliseconds.
    pub p50_ms: f64,
    /// The 99th percentile, in milliseconds.
    pub p99_ms: f64,
    /// The 99.9th percentile, in milliseconds.
    pub p999_ms: f64,
    /// The longest latency, in milliseconds.
    pub max_ms: f64,
}

/// Violations as text.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ViolationsReport {
    /// The number of violations.
    pub count: u64,
    /// The first violations.
    pub first: Vec<String>,
}

impl Report {
    pub(crate) fn new(
        scenario: &'static str,
        concurrency: usize,
        elapsed: Duration,
        tally: &Tally,
        violations: &Violations,
    ) -> Self {
        let answered = tally.requests - tally.errors_total();
        let operations = tally.latencies.iter();
        Self {
            scenario,
            concurrency,
            elapsed_seconds: elapsed.as_secs_f64(),
            requests: tally.requests,
            requests_per_second: answered as f64 / elapsed.as_secs_f64().max(f64::EPSILON),
            errors: tally.errors.clone(),
            operations: operations.map(|(&operation, latencies)| (operation, latencies.into())).collect(),
            violations: violations.into(),
        }
    }

    /// Returns the number of requests not answered as expected.
    pub fn errors_total(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Returns the requests of one operation, if any.
    pub fn operation(&self, operation: Operation) -> Option<&OperationReport> {
        self.operations.get(&operation)
    }
}

impl From<&Latencies> for OperationReport {
    fn from(latencies: &Latencies) -> Self {
        let millis = |latency: Duration| latency.as_secs_f64() * 1_000.0;
        Self {
            requests: latencies.count(),
            mean_ms: millis(latencies.mean()),
            p50_ms: millis(latencies.at(0.5)),
            p99_ms: millis(latencies.at(0.99)),
            p999_ms: millis(latencies.at(0.999)),
            max_ms: millis(latencies.at(1.0)),
        }
    }
}

impl From<&Violations> for ViolationsReport {
    fn from(violations: &Violations) -> Self {
        Self {
            count: violations.count(),
            first: violations.first().iter().map(ToString::to_string).collect(),
        }
    }
}
