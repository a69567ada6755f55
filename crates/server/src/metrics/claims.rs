//! What clients asked of the engine, and how long it took to decide.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use seatkeeper_core::PoolKind;
use seatkeeper_registry::{Answer, Claimed, Granted};

use super::Timing;
use crate::error::Error;

/// Claims and heartbeats, as this node answered them.
#[derive(Clone, Debug)]
pub(crate) struct ClaimMetrics {
    admission: Family<Decided, Timing, fn() -> Timing>,
    heartbeat: Timing,
    acquires: Counter,
    failures: Family<Failed, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Decided {
    pool_kind: &'static str,
    decision: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Failed {
    reason: &'static str,
}

/// Why a request for a seat of a license got none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AcquireFailure {
    /// Every seat is in use.
    Full,
    /// The license is past its date.
    Expired,
    /// There is no such license, or it is not active.
    NotFound,
    /// The license needs a field that the request lacks.
    Invalid,
    /// It could not be decided, or not put on record.
    Unavailable,
}

impl AcquireFailure {
    const ALL: [Self; 5] = [Self::Full, Self::Expired, Self::NotFound, Self::Invalid, Self::Unavailable];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Expired => "expired",
            Self::NotFound => "not_found",
            Self::Invalid => "invalid",
            Self::Unavailable => "unavailable",
        }
    }
}

impl From<&Error> for AcquireFailure {
    #[expect(clippy::wildcard_enum_match_arm, reason = "whatever else it is, there was no decision")]
    fn from(error: &Error) -> Self {
        match error {
            Error::LicenseNotFound => Self::NotFound,
            Error::Invalid(_) => Self::Invalid,
            _ => Self::Unavailable,
        }
    }
}

impl Default for ClaimMetrics {
    fn default() -> Self {
        let failures = Family::<Failed, Counter>::default();
        for failure in AcquireFailure::ALL {
            drop(failures.get_or_create(&Failed { reason: failure.as_str() }));
        }
        Self {
            admission: Family::new_with_constructor(Timing::of_answers),
            heartbeat: Timing::of_answers(),
            acquires: Counter::default(),
            failures,
        }
    }
}

impl ClaimMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "license_acquire_requests",
            "Requests for a seat of a license that were understood",
            self.acquires.clone(),
        );
        registry.register(
            "license_acquire_failures",
            "Requests for a seat of a license that got none, by the reason",
            self.failures.clone(),
        );
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

    /// A claim was decided, or could not be.
    pub(crate) fn claimed(&self, kind: PoolKind, decided: &Result<Claimed, Error>, took: Duration) {
        let decided = Decided { pool_kind: kind.as_str(), decision: decision(decided) };
        self.admission.get_or_create(&decided).observe(took);
    }

    /// A heartbeat was answered, or could not be.
    pub(crate) fn beat(&self, took: Duration) {
        self.heartbeat.observe(took);
    }

    /// Somebody asked for a seat of a license.
    pub(crate) fn acquire_asked(&self) {
        self.acquires.inc();
    }

    /// Somebody got none.
    pub(crate) fn acquire_failed(&self, failure: AcquireFailure) {
        self.failures.get_or_create(&Failed { reason: failure.as_str() }).inc();
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
