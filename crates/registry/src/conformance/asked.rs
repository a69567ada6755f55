//! Expectations on the answer to a clause's claim.

use seatkeeper_core::{Denial, EndReason, SessionId, Span};

use crate::{Answer, Claimed, Error, Granted, Live};

/// The answer to a claim. An expectation that fails panics with the actual answer.
#[derive(Debug)]
pub(super) struct ClaimResult(pub(super) Result<Claimed, Error>);

impl ClaimResult {
    /// Expects an answer.
    #[track_caller]
    pub(super) fn answered(self) -> Claimed {
        self.0.expect("a registry answers claims")
    }

    /// Expects an error, and returns it.
    #[track_caller]
    pub(super) fn failed(self) -> Error {
        self.0.expect_err("there should be no answer")
    }

    /// Expects a new session for which no session had to end.
    #[track_caller]
    pub(super) fn admitted(self) -> Live {
        self.admitted_ending(&[])
    }

    /// Expects a new session for which the sessions in `ends` had to end, in order.
    #[track_caller]
    pub(super) fn admitted_ending(self, ends: &[(&Live, EndReason)]) -> Live {
        let (live, ended) = self.granted(Granted::Admitted);
        let ends: Vec<_> = ends.iter().map(|&(live, reason)| (live.session.id, reason)).collect();
        assert_eq!(ended, ends);
        live
    }

    #[track_caller]
    pub(super) fn resumed(self) -> Live {
        self.granted_alone(Granted::Resumed)
    }

    #[track_caller]
    pub(super) fn refreshed(self) -> Live {
        self.granted_alone(Granted::Refreshed)
    }

    #[track_caller]
    pub(super) fn existing(self) -> Live {
        self.granted_alone(Granted::Existing)
    }

    #[track_caller]
    pub(super) fn denied(self) -> Denial {
        let claimed = self.answered();
        let Answer::Denied(denial) = claimed.answer else { panic!("expected a denial, got {claimed:?}") };
        denial
    }

    /// Expects a denial by a full pool. Returns the time until a seat can come free.
    #[track_caller]
    pub(super) fn full(self) -> Option<Span> {
        match self.denied() {
            Denial::Full { free_in } => free_in,
            other @ (Denial::EntitlementOver { .. } | Denial::EntitlementClosed) => {
                panic!("expected a full pool, got {other:?}")
            }
        }
    }

    /// Returns whether the claim started a new session.
    pub(super) fn is_admitted(&self) -> bool {
        let answer = self.0.as_ref().map(|claimed| &claimed.answer);
        matches!(answer, Ok(Answer::Granted { how: Granted::Admitted, .. }))
    }

    #[track_caller]
    fn granted_alone(self, how: Granted) -> Live {
        let (live, ended) = self.granted(how);
        assert_eq!(ended, []);
        live
    }

    #[track_caller]
    fn granted(self, expected: Granted) -> (Live, Vec<(SessionId, EndReason)>) {
        let claimed = self.answered();
        match claimed.answer {
            Answer::Granted { how, session, ended } if how == expected => (*session, ended),
            other @ (Answer::Granted { .. } | Answer::Denied(_)) => {
                panic!("expected {expected:?}, got {other:?}")
            }
        }
    }
}
