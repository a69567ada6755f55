//! The admission rule: may this client use this, now?
//!
//! [`admit`] is the whole of it, clause by clause in the order that decides. Membership comes before
//! capacity, so a retry by someone who holds a seat is never told "full"; and no admission leaves a
//! pool above its limit. [`renew`], [`end`] and [`revise`] are the three other things that can happen
//! to a pool. All are plain functions of what they are given.

use serde::{Deserialize, Serialize};

use crate::{
    Claim, EndReason, Policy, Pool, PoolKind, RegistryTime, Session, SessionId, Span, Standing, Terms,
    UserId, Users, WhenFull, WhenHeld, WhenNamed,
};

/// What became of a claim, and which sessions ended on the way, in the order in which they did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The answer.
    pub outcome: Outcome,
    /// Sessions that ended, before the admission if there is one.
    pub ended: Vec<Ending>,
}

/// The most sessions that one decision evicts, beside a named session. A limit that was lowered by more takes several
/// decisions.
pub const EVICTIONS_MAX: u32 = 256;

/// The answer to a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A new session took a seat.
    Admitted(SessionId),
    /// The session that the claim named goes on, renewed.
    Refreshed(SessionId),
    /// The session that the holder had goes on, renewed.
    Resumed(SessionId),
    /// The session that the holder had stands as it was.
    Existing(SessionId),
    /// No seat.
    Denied(Denial),
    /// No seat yet: [`EVICTIONS_MAX`] sessions were evicted, and more must go. The caller makes the same claim again.
    MakingRoom,
}

/// Why there is no seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Denial {
    /// Every seat is taken. The earliest time until one can come free, if its holder goes silent;
    /// none if none ever can.
    Full {
        /// From now on.
        free_in: Option<Span>,
    },
    /// The entitlement has reached its end.
    EntitlementOver {
        /// When it did.
        ended_at: RegistryTime,
    },
    /// The entitlement is suspended or revoked.
    EntitlementClosed,
}

impl Denial {
    /// The denial's name in records and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Full { .. } => "full",
            Self::EntitlementOver { .. } => "entitlement_over",
            Self::EntitlementClosed => "entitlement_closed",
        }
    }
}

/// A session that just ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The session as it last was.
    pub session: Session,
    /// Why it ended.
    pub reason: EndReason,
    /// When it would have been over, or was.
    pub expires: RegistryTime,
}

/// Decides a claim on `pool` and carries it out. A new session is called `fresh`.
///
/// Takes time for the sessions that it ends, not for those that stay, and evicts at most [`EVICTIONS_MAX`] at once.
pub fn admit(
    pool: &mut Pool,
    claim: &Claim,
    policy: &Policy,
    fresh: SessionId,
    now: RegistryTime,
) -> Decision {
    // 1. What is over is forgotten, under the terms that hold now.
    let ended = match policy.terms {
        Some(terms) => revise(pool, terms, now),
        None => forget_over(pool, now),
    };
    let terms = pool.terms().unwrap_or(policy.terms_unknown());
    let mut turn = Turn { pool, claim, policy, terms, fresh, now, ended };
    let outcome = turn.outcome();
    Decision { outcome, ended: turn.ended }
}

/// What a heartbeat found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// The session lives on.
    Renewed,
    /// The session was over, and has ended now. Nothing brings it back.
    Over(Box<Ending>),
    /// No such session is live in the pool.
    Missing,
}

/// Renews the session at `now`, unless it is over.
pub fn renew(pool: &mut Pool, id: SessionId, now: RegistryTime) -> Renewal {
    let Some(session) = pool.get(id) else {
        return Renewal::Missing;
    };
    if pool.expiry_of(session) <= now {
        let ending = take_out(pool, id, EndReason::Expired);
        return ending.map_or(Renewal::Missing, |ending| Renewal::Over(Box::new(ending)));
    }
    let ttl = pool.terms().map_or(session.ttl, |terms| terms.ttl);
    pool.renew(id, ttl, now, None);
    Renewal::Renewed
}

/// Ends the session for `reason`, or as expired if it was over before; none if it is not in the pool.
pub fn end(pool: &mut Pool, id: SessionId, reason: EndReason, now: RegistryTime) -> Option<Ending> {
    let over = pool.expiry_of(pool.get(id)?) <= now;
    take_out(pool, id, if over { EndReason::Expired } else { reason })
}

/// Lets `user` out of a live session that others share, and says whether it did: if not, the seat is
/// the user's alone to give back.
pub fn leave(pool: &mut Pool, id: SessionId, user: &UserId, now: RegistryTime) -> bool {
    let live = pool.get(id).is_some_and(|session| pool.expiry_of(session) > now);
    live && pool.leave(id, user)
}

/// Ends every session for `reason`, those that were over before as expired.
pub fn end_all(pool: &mut Pool, reason: EndReason, now: RegistryTime) -> Vec<Ending> {
    let mut ended = forget_over(pool, now);
    let all: Vec<_> = pool.iter().map(|session| session.id).collect();
    ended.extend(take_out_all(pool, &all, reason));
    ended
}

/// Lets the pool learn `terms` if they are newer than its own, and returns the sessions that ended:
/// those that are over, under the old terms or the new, and all of them if the entitlement is closed.
pub fn revise(pool: &mut Pool, terms: Terms, now: RegistryTime) -> Vec<Ending> {
    // Under the old terms first: an extended entitlement does not bring back what was over.
    let mut ended = forget_over(pool, now);
    if pool.learn(terms) {
        ended.extend(forget_over(pool, now));
    }
    if pool.terms().is_some_and(|terms| terms.standing == Standing::Closed) {
        ended.extend(end_all(pool, EndReason::EntitlementEnded, now));
    }
    ended
}

/// Ends every session that is over at `now`, as expired.
pub fn forget_over(pool: &mut Pool, now: RegistryTime) -> Vec<Ending> {
    if pool.next_expiry().is_none_or(|next| next > now) {
        return Vec::new();
    }
    let over = pool.over(now);
    take_out_all(pool, &over, EndReason::Expired)
}

/// Puts back a session that the ledger knows as live into a pool of this kind. Where heartbeats keep
/// sessions alive it gets one full TTL from `now`, since its holder could not send any meanwhile; else it
/// keeps the end that it had. Does nothing if its holder is in already.
pub fn restore(pool: &mut Pool, kind: PoolKind, session: Session, now: RegistryTime) {
    if pool.held_by(&session.holder).is_some() || pool.get(session.id).is_some() {
        return;
    }
    let ttl = pool.terms().map_or(session.ttl, |terms| terms.ttl);
    pool.insert(if kind.has_heartbeats() {
        Session { last_heartbeat: now, ttl, ..session }
    } else {
        session
    });
}

/// One claim being decided.
struct Turn<'a> {
    pool: &'a mut Pool,
    claim: &'a Claim,
    policy: &'a Policy,
    terms: Terms,
    fresh: SessionId,
    now: RegistryTime,
    ended: Vec<Ending>,
}

impl Turn<'_> {
    fn outcome(&mut self) -> Outcome {
        if let Some(denial) = self.entitlement_denies() {
            return Outcome::Denied(denial);
        }
        // 2. The holder's own session, named.
        if let Some(id) = self.named_own() {
            self.go_on(id);
            return Outcome::Refreshed(id);
        }
        // 3. The holder is in already.
        if let Some(held) = self.pool.held_by(&self.claim.holder) {
            let (id, lower) = (held.id, held.tier < self.claim.tier);
            return match self.policy.when_held {
                WhenHeld::Resume => self.resume(id),
                WhenHeld::Supersede => self.swap(id, EndReason::Superseded),
                WhenHeld::Upgrade if lower => self.swap(id, EndReason::Upgraded),
                WhenHeld::Upgrade => Outcome::Existing(id),
            };
        }
        // 4. A seat is free.
        if self.pool.live() < self.terms.limit.0 {
            return self.take_seat();
        }
        // 5. Full.
        if !self.may_make_room() {
            return Outcome::Denied(self.full());
        }
        if self.is_far_above_limit() {
            return self.evict_some();
        }
        let named = self.claim.replace;
        if let Some(ending) = named.and_then(|id| take_out(self.pool, id, EndReason::Evicted)) {
            self.ended.push(ending);
        }
        self.evict_below_limit();
        self.take_seat()
    }

    fn entitlement_denies(&self) -> Option<Denial> {
        if self.terms.standing == Standing::Closed {
            return Some(Denial::EntitlementClosed);
        }
        let ended_at = self.terms.ends_at.filter(|&ends_at| ends_at <= self.now)?;
        Some(Denial::EntitlementOver { ended_at })
    }

    /// The session that the claim names, if it is live here and belongs to the holder.
    fn named_own(&self) -> Option<SessionId> {
        let named = self.pool.get(self.claim.session?)?;
        let own = match self.policy.when_named {
            WhenNamed::SameHolder => named.holder == self.claim.holder,
            WhenNamed::SameDevice => named.holder.device() == self.claim.holder.device(),
        };
        own.then_some(named.id)
    }

    /// Whether ending sessions may bring a full pool below its limit. Unknown terms never evict.
    fn may_make_room(&self) -> bool {
        let limit = self.terms.limit.0;
        let names_one = self.claim.replace.is_some_and(|id| self.pool.get(id).is_some());
        let one_is_enough = self.pool.live() == limit;
        limit > 0
            && self.policy.terms.is_some()
            && (self.policy.when_full == WhenFull::Evict || (names_one && one_is_enough))
    }

    /// A new session takes the holder's seat, if that leaves the pool within its limit: it may have
    /// been lowered since, and then others must go as well. If they may not, the old session stays,
    /// for the holder is never told "full".
    fn swap(&mut self, held: SessionId, reason: EndReason) -> Outcome {
        let within = self.pool.live() <= self.terms.limit.0;
        let evicts =
            self.policy.when_full == WhenFull::Evict && self.policy.terms.is_some() && self.terms.limit.0 > 0;
        if !within && !evicts {
            return match self.policy.when_held {
                WhenHeld::Upgrade => Outcome::Existing(held),
                WhenHeld::Supersede | WhenHeld::Resume => self.resume(held),
            };
        }
        if self.is_far_above_limit() {
            return self.evict_some();
        }
        self.ended.extend(take_out(self.pool, held, reason));
        self.evict_below_limit();
        self.take_seat()
    }

    fn resume(&mut self, held: SessionId) -> Outcome {
        self.go_on(held);
        Outcome::Resumed(held)
    }

    fn go_on(&mut self, id: SessionId) {
        self.pool.renew(id, self.terms.ttl, self.now, Some(&self.claim.user));
    }

    /// Returns whether a free seat takes more than [`EVICTIONS_MAX`] evictions.
    fn is_far_above_limit(&self) -> bool {
        self.pool.live().saturating_sub(self.terms.limit.0) >= EVICTIONS_MAX
    }

    /// Evicts [`EVICTIONS_MAX`] sessions.
    fn evict_some(&mut self) -> Outcome {
        for _ in 0..EVICTIONS_MAX {
            self.evict_stalest();
        }
        Outcome::MakingRoom
    }

    /// Evicts until a seat is free: at most [`EVICTIONS_MAX`] sessions, for the pool is not far above its limit.
    fn evict_below_limit(&mut self) {
        while self.pool.live() >= self.terms.limit.0 && self.evict_stalest() {}
    }

    /// Evicts the stalest session, if there is one.
    fn evict_stalest(&mut self) -> bool {
        let Some(stalest) = self.pool.stalest().map(|session| session.id) else { return false };
        self.ended.extend(take_out(self.pool, stalest, EndReason::Evicted));
        true
    }

    fn take_seat(&mut self) -> Outcome {
        self.pool.insert(Session {
            id: self.fresh,
            holder: self.claim.holder.clone(),
            users: Users::one(self.claim.user.clone()),
            started: self.now,
            last_heartbeat: self.now,
            ttl: self.terms.ttl,
            tier: self.claim.tier,
        });
        Outcome::Admitted(self.fresh)
    }

    fn full(&self) -> Denial {
        let free_at = self.pool.below_limit_at(self.terms.limit);
        Denial::Full { free_in: free_at.map(|at| at.since(self.now)) }
    }
}

fn take_out(pool: &mut Pool, id: SessionId, reason: EndReason) -> Option<Ending> {
    let expires = pool.expiry_of(pool.get(id)?);
    let session = pool.remove(id)?;
    Some(Ending { session, reason, expires })
}

fn take_out_all(pool: &mut Pool, ids: &[SessionId], reason: EndReason) -> Vec<Ending> {
    ids.iter().filter_map(|&id| take_out(pool, id, reason)).collect()
}
