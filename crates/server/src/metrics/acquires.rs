//! Counters of requests for a seat of a license, with failures by reason.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use seatkeeper_core::named_enum;

use crate::error::Error;

/// Counters of requests for a seat of a license, as answered by this node.
#[derive(Clone, Debug)]
pub(crate) struct AcquireMetrics {
    acquires: Counter,
    failures: Family<Failed, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Failed {
    reason: &'static str,
}

named_enum! {
    /// The reason why a request for a seat of a license failed.
    pub(crate) enum AcquireFailure {
        /// Every seat is in use.
        Full = "full",
        /// The license is past its date.
        Expired = "expired",
        /// The license does not exist or is not active.
        NotFound = "not_found",
        /// The license needs a field that the request lacks.
        Invalid = "invalid",
        /// The request could not be decided, or the decision could not be recorded.
        Unavailable = "unavailable",
    }
}

impl From<&Error> for AcquireFailure {
    #[expect(clippy::wildcard_enum_match_arm, reason = "every other error leaves the request undecided")]
    fn from(error: &Error) -> Self {
        match error {
            Error::LicenseNotFound => Self::NotFound,
            Error::Invalid(_) => Self::Invalid,
            _ => Self::Unavailable,
        }
    }
}

impl Default for AcquireMetrics {
    fn default() -> Self {
        let failures = Family::<Failed, Counter>::default();
        for failure in AcquireFailure::ALL {
            drop(failures.get_or_create(&Failed { reason: failure.as_str() }));
        }
        Self { acquires: Counter::default(), failures }
    }
}

impl AcquireMetrics {
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
    }

    /// Counts a request that was understood.
    pub(crate) fn asked(&self) {
        self.acquires.inc();
    }

    /// Counts a request that got no seat.
    pub(crate) fn failed(&self, failure: AcquireFailure) {
        self.failures.get_or_create(&Failed { reason: failure.as_str() }).inc();
    }
}
