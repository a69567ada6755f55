//! Counters and times of requests sent to other regions.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use seatkeeper_core::named_enum;

use super::Timing;

/// Counters and times of this node's forwarded requests.
#[derive(Clone, Debug)]
pub(crate) struct RegionMetrics {
    forwarded: Family<Forwarded, Counter>,
    answers: Timing,
    batches: Family<Batches, Counter>,
    heartbeat_lag: Timing,
    admitted_alone: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Forwarded {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Batches {
    outcome: &'static str,
}

named_enum! {
    /// The outcome of a forwarded request.
    pub(crate) enum ForwardOutcome {
        /// The home answered, with success or a denial.
        Answered = "answered",
        /// The home was out of reach, or refused the request.
        Unavailable = "unavailable",
    }
}

named_enum! {
    /// The outcome of a batch of heartbeats.
    pub(crate) enum BatchOutcome {
        /// The home answered each heartbeat.
        Answered = "answered",
        /// The home took no batch, and each heartbeat was forwarded by itself.
        Refused = "refused",
        /// The home was out of reach, or could not decide now.
        Unavailable = "unavailable",
    }
}

impl Default for RegionMetrics {
    fn default() -> Self {
        let forwarded = Family::<Forwarded, Counter>::default();
        for outcome in ForwardOutcome::ALL.map(ForwardOutcome::as_str) {
            drop(forwarded.get_or_create(&Forwarded { outcome }));
        }
        let batches = Family::<Batches, Counter>::default();
        for outcome in BatchOutcome::ALL.map(BatchOutcome::as_str) {
            drop(batches.get_or_create(&Batches { outcome }));
        }
        Self {
            forwarded,
            answers: Timing::of_answers(),
            batches,
            heartbeat_lag: Timing::of_answers(),
            admitted_alone: Counter::default(),
        }
    }
}

impl RegionMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "region_forwarded",
            "Requests forwarded to the home region of their pool, by outcome",
            self.forwarded.clone(),
        );
        registry.register(
            "region_forward_seconds",
            "Time from a forwarded request to the beginning of its answer",
            self.answers.clone(),
        );
        registry.register(
            "region_heartbeat_batches",
            "Batches of heartbeats sent to the home region of their sessions, by outcome",
            self.batches.clone(),
        );
        registry.register(
            "region_heartbeat_lag_seconds",
            "Time from a batched heartbeat to the answer of its home",
            self.heartbeat_lag.clone(),
        );
        registry.register(
            "region_admitted_alone",
            "Devices admitted by this node alone while their home region was unreachable",
            self.admitted_alone.clone(),
        );
    }

    /// Counts a forwarded request that took `time`.
    pub(crate) fn forwarded(&self, outcome: ForwardOutcome, time: Duration) {
        self.forwarded.get_or_create(&Forwarded { outcome: outcome.as_str() }).inc();
        self.answers.observe(time);
    }

    /// Counts a batch of heartbeats.
    pub(crate) fn batch(&self, outcome: BatchOutcome) {
        self.batches.get_or_create(&Batches { outcome: outcome.as_str() }).inc();
    }

    /// Counts a device admitted in place of its unreachable home.
    pub(crate) fn admitted_alone(&self) {
        self.admitted_alone.inc();
    }

    /// Counts a batched heartbeat that waited `lag` for the home's answer.
    pub(crate) fn renewed(&self, lag: Duration) {
        self.heartbeat_lag.observe(lag);
    }
}
