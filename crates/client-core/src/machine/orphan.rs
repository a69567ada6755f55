//! Orphaned sessions: alive at the server, perhaps, without a lease in the machine.

use crate::answer::Setback;
use crate::lease::HeldSession;
use crate::response::Failure;

/// The orphaned session of the holder, for a release to end. A holder has at most one live session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Orphan {
    /// No session of the holder lives.
    #[default]
    None,
    /// The session of the last lease may live.
    Known(HeldSession),
    /// The reply to an acquire is lost, so a session with an unknown id may live. An acquire is idempotent by holder:
    /// the next acquire tells the id, also the id of an earlier session.
    Unknown,
}

impl Orphan {
    /// Notes an aborted acquire.
    pub(super) fn acquire_aborted(&mut self) {
        *self = Self::Unknown;
    }

    /// Notes an acquire without a response.
    pub(super) fn acquire_failed(&mut self, failure: Failure) {
        if failure.may_have_arrived() {
            *self = Self::Unknown;
        }
    }

    /// Notes an acquire without a grant. A full license resumes the session of a holder, so the problem `full` proves that no
    /// session lives.
    pub(super) fn acquire_set_back(&mut self, setback: &Setback, full: &str) {
        match setback {
            Setback::Transient { in_doubt: true, .. } => *self = Self::Unknown,
            Setback::Refused(problem) if problem.code() == full => *self = Self::None,
            Setback::Transient { in_doubt: false, .. }
            | Setback::Hopeless
            | Setback::Unauthenticated(_)
            | Setback::Refused(_) => {}
        }
    }
}
