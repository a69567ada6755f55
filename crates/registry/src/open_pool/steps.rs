//! Steps of callers on a pool: the rule decides, and the change is recorded.

use seatkeeper_core::rule::{self, Renewal};
use seatkeeper_core::{
    Authority, Change, Decision, EndReason, Ending, Origin, Outcome, Reach, RegistryTime, SessionId, Terms,
};

use super::{OpenPool, Record};
use crate::contract::{Answer, Granted, Liveness, Request};

/// The outcome of a heartbeat.
pub(crate) enum RenewalOutcome {
    /// The session lives on.
    Renewed(Liveness),
    /// The session was over, and has ended.
    Over {
        /// The session's last heartbeat.
        last_heartbeat: RegistryTime,
    },
    /// The session is not in the pool, or belongs to another caller.
    Missing,
}

/// The outcome of the end of a session.
pub(crate) enum Closing {
    /// The session ended in this step.
    Ended(EndReason),
    /// The caller left the session, shared with other users who go on.
    Left,
    /// The session is not in the pool, or belongs to another caller.
    Missing,
}

/// The outcome of a sweep of a pool.
pub(crate) struct Sweeping {
    /// The ended sessions.
    pub(crate) ended: Vec<Ending>,
    /// The pool may close.
    pub(crate) may_close: bool,
}

impl OpenPool {
    /// Decides a claim; a new session gets the id `fresh`. The answer is `None` for [`Outcome::MakingRoom`].
    pub(crate) fn claim(
        &mut self,
        request: Request<'_>,
        fresh: SessionId,
        now: RegistryTime,
        journal: &mut impl Record,
    ) -> (Option<Answer>, Decision) {
        let decision = rule::admit(&mut self.pool, request.claim, request.policy, fresh, now);
        let admitted = matches!(decision.outcome, Outcome::Admitted(_));
        self.record_ends(&decision.ended, u32::from(admitted), request.origin, now, journal);
        let (how, id) = match decision.outcome {
            Outcome::Admitted(id) => (Granted::Admitted, id),
            Outcome::Refreshed(id) => (Granted::Refreshed, id),
            Outcome::Resumed(id) => (Granted::Resumed, id),
            Outcome::Existing(id) => (Granted::Existing, id),
            Outcome::Denied(why) => {
                self.record_denial(request.claim.holder.clone(), why, request.origin, now, journal);
                return (Some(Answer::Denied(why)), decision);
            }
            Outcome::MakingRoom => return (None, decision),
        };
        let Some(session) = self.pool.get(id).map(|session| self.live_view(session, now)) else {
            // The rule has just inserted the session.
            unreachable!("a granted session is in its pool");
        };
        if admitted {
            let change = Change::Admitted {
                session: Box::new(session.session.clone()),
                expires: session.expires,
                particulars: Box::new(request.particulars.clone()),
            };
            self.record(self.pool.live(), change, request.origin, now, journal);
        }
        let made_room = decision.ended.iter().filter(|ending| !ending.reason.is_by_time());
        let ended = made_room.map(|ending| (ending.session.id, ending.reason)).collect();
        (Some(Answer::Granted { how, session: Box::new(session), ended }), decision)
    }

    /// Renews a session.
    pub(crate) fn heartbeat(
        &mut self,
        id: SessionId,
        who: &Authority,
        now: RegistryTime,
        journal: &mut impl Record,
    ) -> RenewalOutcome {
        if !self.covers(id, who) {
            return RenewalOutcome::Missing;
        }
        match rule::renew(&mut self.pool, self.id.kind, id, now) {
            Renewal::Renewed => match self.pool.get(id) {
                Some(session) => RenewalOutcome::Renewed(self.liveness(session, now)),
                None => RenewalOutcome::Missing,
            },
            Renewal::Over(ending) => {
                self.record_ends(std::slice::from_ref(&*ending), 0, &Origin::SYSTEM, now, journal);
                RenewalOutcome::Over { last_heartbeat: ending.session.last_heartbeat }
            }
            Renewal::Missing => RenewalOutcome::Missing,
        }
    }

    /// Ends a session, or removes the caller from a shared session.
    pub(crate) fn end(
        &mut self,
        id: SessionId,
        who: &Authority,
        reason: EndReason,
        origin: &Origin,
        now: RegistryTime,
        journal: &mut impl Record,
    ) -> Closing {
        if !self.covers(id, who) {
            return Closing::Missing;
        }
        if let (EndReason::Released, Reach::Own(user)) = (reason, &who.reach)
            && rule::leave(&mut self.pool, id, user, now)
        {
            return Closing::Left;
        }
        let Some(ending) = rule::end(&mut self.pool, id, reason, now) else {
            return Closing::Missing;
        };
        self.record_ends(std::slice::from_ref(&ending), 0, origin, now, journal);
        Closing::Ended(ending.reason)
    }

    /// Ends every session.
    pub(crate) fn end_all(
        &mut self,
        reason: EndReason,
        origin: &Origin,
        now: RegistryTime,
        journal: &mut impl Record,
    ) -> Vec<Ending> {
        let ended = rule::end_all(&mut self.pool, reason, now);
        self.record_ends(&ended, 0, origin, now, journal);
        ended
    }

    /// Offers terms to the pool.
    pub(crate) fn revise(
        &mut self,
        terms: Terms,
        origin: &Origin,
        now: RegistryTime,
        journal: &mut impl Record,
    ) -> Vec<Ending> {
        let ended = rule::revise(&mut self.pool, terms, now);
        self.record_ends(&ended, 0, origin, now, journal);
        ended
    }

    /// Ends the sessions of a newly opened pool that are over, or ended by the terms.
    pub(crate) fn settle(&mut self, now: RegistryTime, journal: &mut impl Record) -> Vec<Ending> {
        match self.pool.terms() {
            Some(terms) => self.revise(terms, &Origin::SYSTEM, now, journal),
            None => self.forget_over(now, journal),
        }
    }

    /// Ends the sessions that are over.
    pub(crate) fn forget_over(&mut self, now: RegistryTime, journal: &mut impl Record) -> Vec<Ending> {
        let ended = rule::forget_over(&mut self.pool, now);
        self.record_ends(&ended, 0, &Origin::SYSTEM, now, journal);
        ended
    }

    /// Sweeps a pool that was removed from the due-index. `acknowledged` is the position up to which the
    /// ledger has the journal.
    pub(crate) fn sweep(
        &mut self,
        acknowledged: u64,
        now: RegistryTime,
        journal: &mut impl Record,
    ) -> Sweeping {
        self.due = None;
        let ended = self.forget_over(now, journal);
        self.flush_denials(now, journal);
        Sweeping { ended, may_close: self.may_close(acknowledged, now) }
    }

    fn covers(&self, id: SessionId, who: &Authority) -> bool {
        self.pool.get(id).is_some_and(|session| who.covers(&self.id, session))
    }
}
