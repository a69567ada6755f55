//! The proof that a single server still owns a ledger that another process can take.
//!
//! Invariant: the server promises no seat of a license for longer than a TTL after the latest proof. A process that takes
//! the ledger raises every epoch after the latest proof, and then gives every session of the ledger a full TTL. A promise
//! therefore ends before the new owner may give the seat away.
//!
//! Answers to heartbeats of devices and groups tell no end, so a client counts on a full TTL from each answer. Such answers
//! need a recent proof. A new owner that fills its memory at once keeps such sessions for [`PROOF_AGE_MAX`] longer, and
//! nodes wait for as long before they fill their registry.

use std::time::Duration;

use parking_lot::Mutex;
use seatkeeper_core::Span;
use seatkeeper_host_clock::HostInstant;
use tokio::sync::Notify;

/// The age up to which a proof of ownership is recent: several times the interval of checks, and time for a slow answer of
/// PostgreSQL.
pub(crate) const PROOF_AGE_MAX: Duration = Duration::from_secs(5);

/// The ledger is in the hands of another process, or the latest proof is too old.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotProved;

/// The ownership of a ledger by this process.
pub(super) struct Ownership {
    proof: Mutex<Proof>,
    check_wanted: Notify,
}

/// The result of the latest check.
#[derive(Clone, Copy, Debug)]
enum Proof {
    /// No other process had taken the ledger at this instant.
    Owned(HostInstant),
    /// Another process has taken the ledger, or a copy has replaced the ledger.
    Lost,
}

impl Ownership {
    /// Returns the ownership of a process that owned the ledger at `proved`.
    pub(super) fn new(proved: HostInstant) -> Self {
        Self { proof: Mutex::new(Proof::Owned(proved)), check_wanted: Notify::new() }
    }

    /// Notes that no other process had taken the ledger at `at`.
    pub(super) fn prove(&self, at: HostInstant) {
        let mut proof = self.proof.lock();
        if let Proof::Owned(proved) = &mut *proof {
            *proved = at.max(*proved);
        }
    }

    /// Notes that the ledger is lost, for good.
    pub(super) fn lose(&self) {
        *self.proof.lock() = Proof::Lost;
    }

    /// Returns `Err` if the ledger is known to be lost.
    pub(super) fn check(&self) -> Result<(), NotProved> {
        match *self.proof.lock() {
            Proof::Owned(_) => Ok(()),
            Proof::Lost => Err(NotProved),
        }
    }

    /// Returns `Err` unless the latest proof is recent at `now`.
    pub(super) fn check_recent(&self, now: HostInstant) -> Result<(), NotProved> {
        match *self.proof.lock() {
            Proof::Owned(proved) if now.saturating_duration_since(proved) < PROOF_AGE_MAX => Ok(()),
            Proof::Owned(_) | Proof::Lost => Err(NotProved),
        }
    }

    /// Returns the longest promise at `now` for a session of this TTL: the rest of a TTL after the latest proof.
    pub(super) fn promise_max(&self, ttl: Span, now: HostInstant) -> Result<Span, NotProved> {
        let Proof::Owned(proved) = *self.proof.lock() else { return Err(NotProved) };
        let rest =
            Duration::from_millis(ttl.as_millis()).saturating_sub(now.saturating_duration_since(proved));
        match u64::try_from(rest.as_millis()).unwrap_or(u64::MAX) {
            0 => Err(NotProved),
            millis => Ok(Span::from_millis(millis)),
        }
    }

    /// Requests a check at once, because the ledger seems to be lost.
    pub(super) fn request_check(&self) {
        self.check_wanted.notify_one();
    }

    /// Waits until a check is requested.
    pub(super) async fn check_wanted(&self) {
        self.check_wanted.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, HostInstant, NotProved, Ownership, PROOF_AGE_MAX, Span};

    const TTL: Span = Span::from_secs(10);

    #[test]
    fn a_promise_ends_a_ttl_after_the_latest_proof() {
        let start = HostInstant::now();
        let ownership = Ownership::new(start);
        let after = |millis| ownership.promise_max(TTL, start + Duration::from_millis(millis));
        assert_eq!(after(0), Ok(TTL));
        assert_eq!(after(9_999), Ok(Span::from_millis(1)));
        assert_eq!(after(10_000), Err(NotProved));
        ownership.prove(start + Duration::from_secs(8));
        ownership.prove(start + Duration::from_secs(7));
        assert_eq!(after(10_000), Ok(Span::from_secs(8)));
    }

    #[test]
    fn a_proof_is_recent_for_some_seconds() {
        let start = HostInstant::now();
        let ownership = Ownership::new(start);
        assert_eq!(ownership.check_recent(start + PROOF_AGE_MAX - Duration::from_millis(1)), Ok(()));
        assert_eq!(ownership.check_recent(start + PROOF_AGE_MAX), Err(NotProved));
        ownership.prove(start + PROOF_AGE_MAX);
        assert_eq!(ownership.check_recent(start + PROOF_AGE_MAX), Ok(()));
    }

    #[test]
    fn a_lost_ledger_is_never_proved_again() {
        let start = HostInstant::now();
        let ownership = Ownership::new(start);
        assert_eq!(ownership.check(), Ok(()));
        ownership.lose();
        ownership.prove(start);
        assert_eq!(ownership.check(), Err(NotProved));
        assert_eq!(ownership.promise_max(TTL, start), Err(NotProved));
        assert_eq!(ownership.check_recent(start), Err(NotProved));
    }
}
