//! Latencies of claims and heartbeats, failures included.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use seatkeeper_core::PoolKind;
use seatkeeper_registry::{Answer, Claimed, Granted};

use super::Timing;
use crate::error::Error;

/// Claims and heartbeats answered by this node.
#[derive(Clone, Debug)]
pub struct ClaimMetrics {
    admission: Family<Decided, Timing, fn() -> Timing>,
    heartbeat: Timing,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Decided {
    pool_kind: &'static str,
    decision: &'static str,
}

impl Default for ClaimMetrics {
    fn default() -> Self {
        Self { admission: Family::new_with_constructor(Timing::of_answers), heartbeat: Timing::of_answers() }
    }
}

impl ClaimMetrics {
    /// Registers these metrics with a metrics page.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "session_heartbeat_latency_seconds",
            "How long heartbeats took to be decided",
            self.heartbeat.clone(),
        );
        registry.register(
            "session_admission_latency_seconds",
            "How long claims took to be decided and put on record",
            self.admission.clone(),
        );
    }

    /// Records the latency of a claim, by its decision or as a failure.
    pub(crate) fn claimed(&self, kind: PoolKind, decided: &Result<Claimed, Error>, took: Duration) {
        let decided = Decided { pool_kind: kind.as_str(), decision: decision(decided) };
        self.admission.get_or_create(&decided).observe(took);
    }

    /// Records the latency of a heartbeat, failed or not.
    pub(crate) fn beat(&self, took: Duration) {
        self.heartbeat.observe(took);
    }
}

fn decision(decided: &Result<Claimed, Error>) -> &'static str {
    match decided.as_ref().map(|claimed| &claimed.answer) {
        Ok(Answer::Granted { how: Granted::Admitted, .. }) => "admitted",
        Ok(Answer::Granted { how: Granted::Refreshed, .. }) => "refreshed",
        Ok(Answer::Granted { how: Granted::Resumed, .. }) => "resumed",
        Ok(Answer::Granted { how: Granted::Existing, .. }) => "existing",
        Ok(Answer::Denied(_)) => "denied",
        Err(_) => "failed",
    }
}
