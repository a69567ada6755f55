//! A second implementation of the admission rule, as simple as possible: a list of sessions, scanned from end
//! to end. It shares the input and output types with the crate, but no code.

use seatkeeper_core::rule::EVICTIONS_MAX;
use seatkeeper_core::{
    Claim, Denial, EndReason, Holder, Outcome, Policy, PoolKind, RegistryTime, Seats, Session, SessionId,
    Span, Standing, Terms, Users, WhenFull, WhenHeld, WhenNamed,
};

/// An ended session and the reason.
pub(crate) type End = (SessionId, EndReason);

/// A pool as a list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Naive {
    pub(crate) terms: Option<Terms>,
    pub(crate) live: Vec<Session>,
}

/// The result of a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Renewed,
    Over,
    Missing,
}

impl Naive {
    pub(crate) fn claim(
        &mut self,
        claim: &Claim,
        policy: &Policy,
        fresh: SessionId,
        now: RegistryTime,
    ) -> (Outcome, Vec<End>) {
        // Clause 1: sessions past their expiry end, under the terms in force.
        let mut ended = match policy.terms {
            Some(terms) => self.revise(terms, now),
            None => self.forget(now),
        };
        let unknown = Terms {
            version: 0,
            limit: Seats(1),
            ttl: policy.ttl_default,
            ends_at: None,
            standing: Standing::Open,
        };
        let terms = self.terms.unwrap_or(unknown);
        if terms.standing == Standing::Closed {
            return (Outcome::Denied(Denial::EntitlementClosed), ended);
        }
        if let Some(ended_at) = terms.ends_at
            && ended_at <= now
        {
            return (Outcome::Denied(Denial::EntitlementOver { ended_at }), ended);
        }
        let outcome = self.decide(claim, policy, terms, fresh, now, &mut ended);
        (outcome, ended)
    }

    fn decide(
        &mut self,
        claim: &Claim,
        policy: &Policy,
        terms: Terms,
        fresh: SessionId,
        now: RegistryTime,
        ended: &mut Vec<End>,
    ) -> Outcome {
        let limit = terms.limit.0 as usize;
        let limit_is_known = policy.terms.is_some();
        let evicts = policy.when_full == WhenFull::Evict && limit_is_known && limit > 0;
        // Clause 2: the claim names a live session of its own holder.
        let own = |it: &Session| match policy.when_named {
            WhenNamed::SameHolder => it.holder == claim.holder,
            WhenNamed::SameDevice => device(&it.holder) == device(&claim.holder),
        };
        if let Some(at) = self.live.iter().position(|it| Some(it.id) == claim.session && own(it)) {
            self.renew(at, terms.ttl, now, claim);
            return Outcome::Refreshed(self.live[at].id);
        }
        // Clause 3: the holder already has a live session.
        if let Some(at) = self.live.iter().position(|it| it.holder == claim.holder) {
            let held = self.live[at].id;
            let a_new_one_fits = self.live.len() <= limit || evicts;
            let reason = match policy.when_held {
                WhenHeld::Upgrade if self.live[at].tier >= claim.tier || !a_new_one_fits => {
                    return Outcome::Existing(held);
                }
                WhenHeld::Upgrade => EndReason::Upgraded,
                WhenHeld::Supersede if a_new_one_fits => EndReason::Superseded,
                WhenHeld::Supersede | WhenHeld::Resume => {
                    self.renew(at, terms.ttl, now, claim);
                    return Outcome::Resumed(held);
                }
            };
            self.live.remove(at);
            ended.push((held, reason));
            self.evict_until_below(limit, ended);
            return self.start(claim, terms, fresh, now);
        }
        // Clause 4: the pool has fewer live sessions than the limit.
        if self.live.len() < limit {
            let handed_over = claim.replace.filter(|named| named.is_handed_over).map(|named| named.session);
            if let Some(at) = self.live.iter().position(|it| Some(it.id) == handed_over) {
                ended.push((self.live.remove(at).id, EndReason::Superseded));
            }
            return self.start(claim, terms, fresh, now);
        }
        // Clause 5: the pool is full.
        let named = claim.replace.and_then(|named| {
            Some((self.live.iter().position(|it| it.id == named.session)?, named.is_handed_over))
        });
        let replaces = named.is_some() && limit_is_known && limit > 0 && self.live.len() == limit;
        if !evicts && !replaces {
            return Outcome::Denied(Denial::Full { free_in: self.free_in(limit, now) });
        }
        if let Some((at, is_handed_over)) = named {
            let reason = if is_handed_over { EndReason::Superseded } else { EndReason::Evicted };
            ended.push((self.live.remove(at).id, reason));
        }
        self.evict_until_below(limit, ended);
        self.start(claim, terms, fresh, now)
    }

    pub(crate) fn heartbeat(&mut self, id: SessionId, kind: PoolKind, now: RegistryTime) -> Heard {
        let Some(at) = self.live.iter().position(|it| it.id == id) else { return Heard::Missing };
        if self.expiry(&self.live[at]) <= now {
            self.live.remove(at);
            return Heard::Over;
        }
        let all_are_told = kind == PoolKind::License && self.live[at].users.iter().count() == 1;
        if let Some(terms) = self.terms
            && (all_are_told || terms.ttl > self.live[at].ttl)
        {
            self.live[at].ttl = terms.ttl;
        }
        self.live[at].last_heartbeat = now;
        Heard::Renewed
    }

    pub(crate) fn end(&mut self, id: SessionId, reason: EndReason, now: RegistryTime) -> Option<End> {
        let at = self.live.iter().position(|it| it.id == id)?;
        let over = self.expiry(&self.live[at]) <= now;
        self.live.remove(at);
        Some((id, if over { EndReason::Expired } else { reason }))
    }

    pub(crate) fn revise(&mut self, terms: Terms, now: RegistryTime) -> Vec<End> {
        let mut ended = self.forget(now);
        match &mut self.terms {
            Some(known) if known.version > terms.version => {}
            Some(known) if known.version == terms.version => known.ttl = terms.ttl,
            Some(_) | None => self.terms = Some(terms),
        }
        ended.extend(self.forget(now));
        if self.terms.is_some_and(|terms| terms.standing == Standing::Closed) {
            ended.extend(self.live.drain(..).map(|it| (it.id, EndReason::EntitlementEnded)));
        }
        ended
    }

    pub(crate) fn forget(&mut self, now: RegistryTime) -> Vec<End> {
        let over: Vec<_> = self.live.iter().filter(|it| self.expiry(it) <= now).map(|it| it.id).collect();
        self.live.retain(|it| !over.contains(&it.id));
        over.into_iter().map(|id| (id, EndReason::Expired)).collect()
    }

    /// Returns min(last heartbeat + TTL, end of the entitlement).
    pub(crate) fn expiry(&self, session: &Session) -> RegistryTime {
        let silent = session.last_heartbeat + session.ttl;
        match self.terms.and_then(|terms| terms.ends_at) {
            Some(ends_at) => silent.min(ends_at),
            None => silent,
        }
    }

    /// Returns the least session in the order (last heartbeat, start, id).
    pub(crate) fn stalest(&self) -> Option<usize> {
        (0..self.live.len()).min_by_key(|&at| order(&self.live[at]))
    }

    pub(crate) fn in_order(&self) -> Vec<&Session> {
        let mut sessions: Vec<_> = self.live.iter().collect();
        sessions.sort_by_key(|it| order(it));
        sessions
    }

    fn evict_until_below(&mut self, limit: usize, ended: &mut Vec<End>) {
        while self.live.len() >= limit {
            let Some(at) = self.stalest() else { return };
            ended.push((self.live.remove(at).id, EndReason::Evicted));
        }
    }

    fn renew(&mut self, at: usize, ttl: Span, now: RegistryTime, claim: &Claim) {
        let session = &mut self.live[at];
        session.last_heartbeat = now;
        let is_shared = session.users.iter().any(|user| *user != claim.user);
        session.ttl = if is_shared { ttl.max(session.ttl) } else { ttl };
        session.users.join(&claim.user);
    }

    fn start(&mut self, claim: &Claim, terms: Terms, id: SessionId, now: RegistryTime) -> Outcome {
        self.live.push(Session {
            id,
            holder: claim.holder.clone(),
            users: Users::one(claim.user.clone()),
            started: now,
            last_heartbeat: now,
            ttl: terms.ttl,
            tier: claim.tier,
        });
        Outcome::Admitted(id)
    }

    /// Returns the time until enough sessions have expired to bring the pool below the limit.
    pub(crate) fn free_in(&self, limit: usize, now: RegistryTime) -> Option<Span> {
        let mut expiries: Vec<_> = self.live.iter().map(|it| self.expiry(it)).collect();
        expiries.sort();
        let must_go = (self.live.len() + 1 - limit).min(EVICTIONS_MAX as usize);
        (limit > 0).then(|| expiries[must_go - 1].since(now))
    }
}

/// Returns the device part of a fingerprint.
fn device(holder: &Holder) -> String {
    let name = holder.to_string();
    name.split_once('-').map_or(name.clone(), |(device, _)| device.to_owned())
}

fn order(it: &Session) -> impl Ord + use<> {
    (it.last_heartbeat, it.started, it.id)
}
