//! A naive pool: the rule, clause by clause over a plain list, with the code of each flaw.

use seatkeeper_core::rule::EVICTIONS_MAX;
use seatkeeper_core::{
    Change, Claim, Denial, DenialFold, EndReason, Event, Folded, Origin, Particulars, Policy, PoolId,
    RegistryTime, Seats, Session, SessionId, Span, Standing, Terms, UserId, Users, WhenFull, WhenHeld,
    WhenNamed,
};
use seatkeeper_registry::{Answer, Granted, Live};

use crate::design::Flaw;
use crate::journal::{EPOCH, Journals};

pub(crate) struct Pool {
    pub(crate) id: PoolId,
    pub(crate) flaw: Flaw,
    pub(crate) terms: Option<Terms>,
    pub(crate) sessions: Vec<Session>,
    pub(crate) seq: u64,
    pub(crate) denials: Option<DenialFold>,
    /// For `Flaw::CounterWithTtl`: the number of taken seats, and the end of the counter's TTL.
    pub(crate) counter: (u32, RegistryTime),
    /// For `Flaw::SetWithOneTtl`: the end of the set's TTL.
    pub(crate) set_until: RegistryTime,
}

/// The inputs of a step beside its pool.
pub(crate) struct Step<'a> {
    pub(crate) now: RegistryTime,
    pub(crate) origin: &'a Origin,
    pub(crate) journals: &'a mut Journals,
}

impl Pool {
    pub(crate) fn expiry_of(&self, session: &Session) -> RegistryTime {
        let silent = if self.flaw == Flaw::SetWithOneTtl { self.set_until } else { session.silent_until() };
        self.terms.and_then(|terms| terms.ends_at).map_or(silent, |ends_at| ends_at.min(silent))
    }

    pub(crate) fn live_view(&self, session: &Session, now: RegistryTime) -> Live {
        let expires = self.expiry_of(session);
        Live { session: session.clone(), pool: self.id.clone(), expires, expires_in: expires.since(now) }
    }

    pub(crate) fn get(&self, id: SessionId) -> Option<&Session> {
        self.sessions.iter().find(|session| session.id == id)
    }

    pub(crate) fn limit(&self) -> Seats {
        self.terms.map_or(Seats(1), |terms| terms.limit)
    }

    pub(crate) fn stalest_first(&self) -> Vec<&Session> {
        let mut sessions: Vec<_> = self.sessions.iter().collect();
        sessions.sort_by_key(|session| (session.last_heartbeat, session.started, session.id));
        sessions
    }

    /// Returns the time of the next sweep.
    pub(crate) fn due(&self) -> Option<RegistryTime> {
        let expiries = self.sessions.iter().map(|session| self.expiry_of(session));
        expiries.chain(self.denials.as_ref().and_then(DenialFold::due)).min()
    }

    /// Ends and records a session.
    pub(crate) fn end(&mut self, id: SessionId, reason: EndReason, step: &mut Step<'_>) -> Option<EndReason> {
        let at = self.sessions.iter().position(|session| session.id == id)?;
        let expires = self.expiry_of(&self.sessions[at]);
        let session = self.sessions.remove(at);
        let reason = if expires <= step.now { EndReason::Expired } else { reason };
        if reason != EndReason::Expired {
            self.counter.0 = self.counter.0.saturating_sub(1);
        }
        let origin = if reason == EndReason::Expired { &Origin::SYSTEM } else { step.origin };
        let change = Change::Ended {
            session: session.id,
            holder: session.holder,
            tier: session.tier,
            reason,
            last_heartbeat: session.last_heartbeat,
            expires,
        };
        self.record(change, origin, step.now, step.journals);
        Some(reason)
    }

    pub(crate) fn end_where(
        &mut self,
        which: impl Fn(&Self, &Session) -> bool,
        reason: EndReason,
        step: &mut Step<'_>,
    ) -> usize {
        let ids: Vec<_> =
            self.sessions.iter().filter(|session| which(self, session)).map(|session| session.id).collect();
        ids.iter().filter_map(|&id| self.end(id, reason, step)).count()
    }

    pub(crate) fn forget_over(&mut self, step: &mut Step<'_>) -> usize {
        let now = step.now;
        self.end_where(|pool, session| pool.expiry_of(session) <= now, EndReason::Expired, step)
    }

    pub(crate) fn revise(&mut self, terms: Terms, step: &mut Step<'_>) -> usize {
        let mut ended = self.forget_over(step);
        match &mut self.terms {
            Some(known) if known.version > terms.version => {}
            Some(known) if known.version == terms.version => known.ttl = terms.ttl,
            Some(_) | None => {
                self.terms = Some(terms);
                ended += self.forget_over(step);
            }
        }
        if self.terms.is_some_and(|terms| terms.standing == Standing::Closed) {
            ended += self.end_where(|_, _| true, EndReason::EntitlementEnded, step);
        }
        ended
    }

    /// Ends a session that is over. Returns whether the session was over.
    pub(crate) fn end_if_over(&mut self, id: SessionId, step: &mut Step<'_>) -> bool {
        let now = step.now;
        self.end_where(
            |pool, session| session.id == id && pool.expiry_of(session) <= now,
            EndReason::Expired,
            step,
        ) > 0
    }

    /// Removes a user from a shared session. Returns whether the user left.
    pub(crate) fn leave(&mut self, id: SessionId, user: &UserId, now: RegistryTime) -> bool {
        let live = self.get(id).is_some_and(|session| self.expiry_of(session) > now);
        let session = self.sessions.iter_mut().find(|session| session.id == id);
        live && session.is_some_and(|session| session.users.leave(user))
    }

    /// Renews a session by a heartbeat. The TTL falls only if the answer tells everyone who heartbeats.
    pub(crate) fn heartbeat(&mut self, id: SessionId, now: RegistryTime) {
        let tells = self.id.kind.tells_interval();
        self.renew(id, now, self.terms, |session| tells && session.users.iter().count() == 1);
    }

    fn renew(
        &mut self,
        id: SessionId,
        now: RegistryTime,
        terms: Option<Terms>,
        all_are_told: impl FnOnce(&Session) -> bool,
    ) {
        let Some(session) = self.sessions.iter_mut().find(|session| session.id == id) else { return };
        session.last_heartbeat = session.last_heartbeat.max(now);
        let shortest = if all_are_told(session) { Span::ZERO } else { session.ttl };
        session.ttl = terms.map_or(session.ttl, |terms| terms.ttl.max(shortest));
        let until = session.silent_until();
        self.counter.1 = self.counter.1.max(until);
        self.set_until = until;
    }

    /// Decides a claim by the rule.
    pub(crate) fn claim(
        &mut self,
        claim: &Claim,
        policy: &Policy,
        particulars: &Particulars,
        fresh: SessionId,
        step: &mut Step<'_>,
    ) -> Answer {
        match policy.terms {
            Some(terms) => self.revise(terms, step),
            None => self.forget_over(step),
        };
        let terms = self.terms.unwrap_or(unknown(policy.ttl_default));
        if terms.standing == Standing::Closed {
            return self.deny(claim, Denial::EntitlementClosed, step);
        }
        if let Some(ended_at) = terms.ends_at.filter(|&ends_at| ends_at <= step.now) {
            return self.deny(claim, Denial::EntitlementOver { ended_at }, step);
        }
        let evicts = policy.when_full == WhenFull::Evict && policy.terms.is_some() && terms.limit.0 > 0;
        if self.flaw == Flaw::CapacityFirst && !evicts && self.taken(step.now) >= terms.limit.0 {
            return self.deny_full(claim, terms.limit, step);
        }
        if let Some(answer) = self.held_already(claim, policy, terms, particulars, fresh, step) {
            return answer;
        }
        let named = claim.replace.filter(|named| self.get(named.session).is_some());
        if self.taken(step.now) < terms.limit.0 {
            let mut ended = Vec::new();
            if let Some(named) = named.filter(|named| named.is_handed_over) {
                self.end(named.session, named.reason(), step);
                ended.push((named.session, named.reason()));
            }
            return self.take_seat(claim, terms, particulars, fresh, ended, step);
        }
        let one_is_enough = self.taken(step.now) == terms.limit.0;
        let may = evicts || (named.is_some() && one_is_enough && policy.terms.is_some() && terms.limit.0 > 0);
        if !may {
            return self.deny_full(claim, terms.limit, step);
        }
        let mut ended = Vec::new();
        if let Some(named) = named {
            self.end(named.session, named.reason(), step);
            ended.push((named.session, named.reason()));
        }
        self.evict(terms.limit, &mut ended, step);
        self.take_seat(claim, terms, particulars, fresh, ended, step)
    }

    /// Handles a holder with a session, or a holder that names its session.
    fn held_already(
        &mut self,
        claim: &Claim,
        policy: &Policy,
        terms: Terms,
        particulars: &Particulars,
        fresh: SessionId,
        step: &mut Step<'_>,
    ) -> Option<Answer> {
        if self.flaw == Flaw::CounterWithTtl {
            return None;
        }
        let own = |session: &&Session| match policy.when_named {
            WhenNamed::SameHolder => session.holder == claim.holder,
            WhenNamed::SameDevice => session.holder.device() == claim.holder.device(),
        };
        if let Some(id) = claim.session.and_then(|id| self.get(id)).filter(own).map(|session| session.id) {
            return Some(self.go_on(id, Granted::Refreshed, claim, terms, step.now));
        }
        let held = self.sessions.iter().find(|session| session.holder == claim.holder)?;
        let (id, lower) = (held.id, held.tier < claim.tier);
        let reason = match policy.when_held {
            WhenHeld::Resume => return Some(self.go_on(id, Granted::Resumed, claim, terms, step.now)),
            WhenHeld::Upgrade if !lower => {
                return Some(self.granted(Granted::Existing, id, Vec::new(), step.now));
            }
            WhenHeld::Supersede => EndReason::Superseded,
            WhenHeld::Upgrade => EndReason::Upgraded,
        };
        let evicts = policy.when_full == WhenFull::Evict && policy.terms.is_some() && terms.limit.0 > 0;
        if self.sessions.len() as u32 > terms.limit.0 && !evicts {
            return Some(match policy.when_held {
                WhenHeld::Upgrade => self.granted(Granted::Existing, id, Vec::new(), step.now),
                WhenHeld::Supersede | WhenHeld::Resume => {
                    self.go_on(id, Granted::Resumed, claim, terms, step.now)
                }
            });
        }
        self.end(id, reason, step);
        let mut ended = vec![(id, reason)];
        self.evict(terms.limit, &mut ended, step);
        Some(self.take_seat(claim, terms, particulars, fresh, ended, step))
    }

    /// Returns the number of taken seats.
    fn taken(&self, now: RegistryTime) -> u32 {
        if self.flaw == Flaw::CounterWithTtl { self.counted(now) } else { self.sessions.len() as u32 }
    }

    fn evict(&mut self, limit: Seats, ended: &mut Vec<(SessionId, EndReason)>, step: &mut Step<'_>) {
        while self.taken(step.now) >= limit.0 {
            if self.flaw == Flaw::EvictsExactlyOne && !ended.is_empty() {
                return;
            }
            let Some(id) = self.stalest_first().first().map(|session| session.id) else { return };
            self.end(id, EndReason::Evicted, step);
            ended.push((id, EndReason::Evicted));
        }
    }

    fn take_seat(
        &mut self,
        claim: &Claim,
        terms: Terms,
        particulars: &Particulars,
        fresh: SessionId,
        ended: Vec<(SessionId, EndReason)>,
        step: &mut Step<'_>,
    ) -> Answer {
        let now = step.now;
        let is_handed_over = claim.replace.is_some_and(|named| named.is_handed_over);
        let id = if is_handed_over { fresh.with_handed_over_seat() } else { fresh };
        let session = Session {
            id,
            holder: claim.holder.clone(),
            users: Users::one(claim.user.clone()),
            started: now,
            last_heartbeat: now,
            ttl: terms.ttl,
            tier: claim.tier,
        };
        self.counter = (self.counted(now) + 1, now + terms.ttl);
        self.set_until = session.silent_until();
        self.sessions.push(session.clone());
        let expires = self.expiry_of(&session);
        let (session, particulars) = (Box::new(session), Box::new(particulars.clone()));
        self.record(Change::Admitted { session, expires, particulars }, step.origin, now, step.journals);
        self.granted(Granted::Admitted, id, ended, now)
    }

    fn counted(&self, now: RegistryTime) -> u32 {
        if self.counter.1 <= now { 0 } else { self.counter.0 }
    }

    fn go_on(
        &mut self,
        id: SessionId,
        how: Granted,
        claim: &Claim,
        terms: Terms,
        now: RegistryTime,
    ) -> Answer {
        self.renew(id, now, Some(terms), |session| session.users.iter().all(|user| *user == claim.user));
        if let Some(session) = self.sessions.iter_mut().find(|session| session.id == id) {
            session.users.join(&claim.user);
        }
        self.granted(how, id, Vec::new(), now)
    }

    fn granted(
        &self,
        how: Granted,
        id: SessionId,
        ended: Vec<(SessionId, EndReason)>,
        now: RegistryTime,
    ) -> Answer {
        let session = self.get(id).expect("who is granted a seat is in");
        Answer::Granted { how, session: Box::new(self.live_view(session, now)), ended }
    }

    fn deny_full(&mut self, claim: &Claim, limit: Seats, step: &mut Step<'_>) -> Answer {
        let mut expiries: Vec<_> = self.sessions.iter().map(|session| self.expiry_of(session)).collect();
        expiries.sort_unstable();
        let above = expiries.len().checked_sub(limit.0 as usize);
        let last = above.map(|above| above.min(EVICTIONS_MAX as usize - 1)).filter(|_| limit != Seats(0));
        let free_at = last.and_then(|last| expiries.get(last));
        let free_in = free_at.map(|at| at.since(step.now));
        self.deny(claim, Denial::Full { free_in }, step)
    }

    fn deny(&mut self, claim: &Claim, why: Denial, step: &mut Step<'_>) -> Answer {
        let Some(fold) = &mut self.denials else {
            let (fold, first) = DenialFold::start(claim.holder.clone(), why, step.now);
            self.denials = Some(fold);
            self.record(Change::Denied(first), step.origin, step.now, step.journals);
            return Answer::Denied(why);
        };
        let Folded { earlier, this } = fold.note(claim.holder.clone(), why, step.now);
        if let Some(earlier) = earlier {
            self.record(Change::Denied(earlier), &Origin::SYSTEM, step.now, step.journals);
        }
        if let Some(this) = this {
            self.record(Change::Denied(this), step.origin, step.now, step.journals);
        }
        Answer::Denied(why)
    }

    pub(crate) fn flush_denials(&mut self, step: &mut Step<'_>) {
        if let Some(counted) = self.denials.as_mut().and_then(|fold| fold.flush(step.now)) {
            self.record(Change::Denied(counted), &Origin::SYSTEM, step.now, step.journals);
        }
    }

    fn record(&mut self, change: Change, origin: &Origin, now: RegistryTime, journals: &mut Journals) {
        self.seq += 1;
        journals.push(Event {
            pool: self.id.clone(),
            seq: self.seq,
            epoch: EPOCH,
            at: now,
            live: self.sessions.len() as u32,
            limit: self.limit(),
            version: self.terms.map_or(0, |terms| terms.version),
            origin: origin.clone(),
            change,
        });
    }
}

/// Returns the terms of a pool with unknown terms.
fn unknown(ttl: Span) -> Terms {
    Terms { version: 0, limit: Seats(1), ttl, ends_at: None, standing: Standing::Open }
}
