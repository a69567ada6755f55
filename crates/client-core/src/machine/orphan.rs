//! Sessions that may live at the server although no phase holds their lease.

use crate::answer::Setback;
use crate::response::Failure;

/// The session of this holder that a release has to end. A holder has at most one live session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Orphan {
    /// No session of this holder lives.
    #[default]
    None,
    /// The session of the last lease may live.
    Known(String),
    /// The reply to an acquire is lost, so a session with an unknown id may live. An acquire is idempotent by holder:
    /// another acquire tells the id, also that of an earlier session.
    Unknown,
}

impl Orphan {
    /// Notes an acquire that was aborted on its way.
    pub(super) fn acquire_aborted(&mut self) {
        *self = Self::Unknown;
    }

    /// Notes an acquire without a response.
    pub(super) fn acquire_failed(&mut self, failure: Failure) {
        if failure.may_have_arrived() {
            *self = Self::Unknown;
        }
    }

    /// Notes an acquire without a grant. A server with every seat in use would have resumed a session of this holder.
    pub(super) fn acquire_set_back(&mut self, setback: &Setback) {
        match setback {
            Setback::Transient { in_doubt: true, .. } => *self = Self::Unknown,
            Setback::Refused(problem) if problem.code() == "license-full" => *self = Self::None,
            Setback::Transient { in_doubt: false, .. }
            | Setback::Hopeless
            | Setback::Unauthenticated(_)
            | Setback::Refused(_) => {}
        }
    }
}
