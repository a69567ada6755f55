//! What a run found.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::tally::{Latencies, Tally};
use crate::{Operation, Violations};

/// What a run found. The loop is closed: a slow answer delays the next request, so latencies are those of
/// a server that is asked by so many patient clients.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The scenario's name.
    pub scenario: &'static str,
    /// Connections.
    pub concurrency: usize,
    /// How long it measured, in seconds.
    pub elapsed_seconds: f64,
    /// Requests that were measured, errors included.
    pub requests: u64,
    /// Requests a second that were answered as they may be.
    pub requests_per_second: f64,
    /// How many were answered or failed otherwise, by status or failure.
    pub errors: BTreeMap<String, u64>,
    /// Requests that were answered as they may be, by what came of them.
    pub operations: BTreeMap<Operation, OperationReport>,
    /// Promises of the server's that were seen broken.
    pub violations: ViolationsReport,
}

/// The requests of one kind.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct OperationReport {
    /// How many.
    pub requests: u64,
    /// Their mean latency, in milliseconds.
    pub mean_ms: f64,
    /// The latency that half of them did not exceed, in milliseconds.
    pub p50_ms: f64,
    /// Likewise 99 of 100.
    pub p99_ms: f64,
    /// Likewise 999 of 1,000.
    pub p999_ms: f64,
    /// The longest, in milliseconds.
    pub max_ms: f64,
}

/// Violations as text.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ViolationsReport {
    /// How many.
    pub count: u64,
    /// The first of them.
    pub first: Vec<String>,
}

impl Report {
    pub(crate) fn of(
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

    /// Requests that were not answered as they may be.
    pub fn errors_total(&self) -> u64 {
        self.errors.values().sum()
    }

    /// The requests of one kind, if there were any.
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
