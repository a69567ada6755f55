//! The admission rule: decides whether a client gets a seat.
//!
//! [`admit`] checks five clauses in order. The first match decides:
//!
//! 1. **Expiry.** Sessions past their expiry end. A closed entitlement, or an entitlement past its end,
//!    denies the claim.
//! 2. **Named.** The claim names a live session of its own holder: refresh the session.
//! 3. **Held.** The holder already has a live session: [`WhenHeld`] resumes, supersedes or upgrades the
//!    session.
//! 4. **Free.** The pool has fewer live sessions than its limit: end the session named by [`Claim::replace`] if its
//!    seat is handed over, and admit a new session.
//! 5. **Full.** [`WhenFull::Evict`] ends the session named by [`Claim::replace`], then the stalest sessions,
//!    and admits. [`WhenFull::Deny`] admits only if the named session's seat is enough, and denies otherwise.
//!    Unknown terms and a limit of 0 always deny.
//!
//! Three invariants hold. Membership comes before capacity, so a retry by a holder with a live session is
//! never answered "full". No admission leaves a pool above its limit. Unknown terms never evict.
//!
//! [`renew`], [`end`], [`leave`], [`revise`], [`restore`] and [`resume`] are the remaining steps of a pool. Every step is
//! a plain function of its arguments.

use serde::{Deserialize, Serialize};

use crate::{
    Claim, EndReason, Policy, Pool, PoolKind, RegistryTime, Replacement, Session, SessionId, Span, Standing,
    Terms, UserId, Users, WhenFull, WhenHeld, WhenNamed,
};

/// The outcome of a claim, with the sessions ended on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The answer to the claim.
    pub outcome: Outcome,
    /// The ended sessions, in the order of their ends. An admission follows the last end.
    pub ended: Vec<Ending>,
}

/// Most evictions in a single decision. A session named by [`Claim::replace`] does not count. After a deep
/// cut of the limit, several decisions bring the pool within the limit.
pub const EVICTIONS_MAX: u32 = 256;

/// The answer to a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A new session took a seat.
    Admitted(SessionId),
    /// The session named by the claim was renewed.
    Refreshed(SessionId),
    /// The holder's existing session was renewed.
    Resumed(SessionId),
    /// The holder's existing session stays unchanged.
    Existing(SessionId),
    /// The claim gets no seat.
    Denied(Denial),
    /// No seat yet: [`EVICTIONS_MAX`] sessions were evicted, and the pool is still full. The caller retries
    /// the claim.
    MakingRoom,
}

/// The reason for denying a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Denial {
    /// Every seat is taken.
    Full {
        /// Time until a seat can come free, if holders go silent. A lower bound if more than [`EVICTIONS_MAX`]
        /// sessions have to go first. `None` under a limit of 0, because no seat ever can.
        free_in: Option<Span>,
    },
    /// The entitlement has reached its end.
    EntitlementOver {
        /// End of the entitlement.
        ended_at: RegistryTime,
    },
    /// The entitlement is suspended or revoked.
    EntitlementClosed,
}

impl Denial {
    /// Returns the name of the denial in records and metrics.
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
    /// The session in its last state.
    pub session: Session,
    /// The reason for the end.
    pub reason: EndReason,
    /// Expiry of the session when the session ended. Already reached if the reason is [`EndReason::Expired`].
    pub expires: RegistryTime,
}

/// Decides `claim` on `pool` and applies the decision. A new session gets the id `fresh`, marked by
/// [`SessionId::with_handed_over_seat`] if the claim hands a seat over.
///
/// The cost grows with the number of ended sessions, not with the size of the pool. [`EVICTIONS_MAX`] bounds
/// the evictions.
pub fn admit(
    pool: &mut Pool,
    claim: &Claim,
    policy: &Policy,
    fresh: SessionId,
    now: RegistryTime,
) -> Decision {
    // 1. Sessions past their expiry end, under the newest terms.
    let ended = match policy.terms {
        Some(terms) => revise(pool, terms, now),
        None => forget_over(pool, now),
    };
    let terms = pool.terms().unwrap_or(policy.terms_unknown());
    let mut turn = Turn { pool, claim, policy, terms, fresh, now, ended };
    let outcome = turn.outcome();
    Decision { outcome, ended: turn.ended }
}

/// The result of a heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// The session lives on.
    Renewed,
    /// The session was past its expiry, and has just ended. A later heartbeat cannot revive an ended session.
    Over(Box<Ending>),
    /// The pool has no session with the given id.
    Missing,
}

/// Renews the session `id`, in a pool of the given kind, at `now`. A session past its expiry ends instead.
///
/// The session takes the pool's TTL, or keeps a longer one if somebody who heartbeats is not told the new interval and
/// goes on by the old: the holder, in a pool of this kind, or another user of the session.
pub fn renew(pool: &mut Pool, kind: PoolKind, id: SessionId, now: RegistryTime) -> Renewal {
    let Some(session) = pool.get(id) else {
        return Renewal::Missing;
    };
    if pool.expiry_of(session) <= now {
        let ending = take_out(pool, id, EndReason::Expired);
        return ending.map_or(Renewal::Missing, |ending| Renewal::Over(Box::new(ending)));
    }
    let ttl = match pool.terms() {
        Some(terms) if kind.tells_interval() && session.users.is_one() => terms.ttl,
        Some(_) | None => pool.longest_ttl(session.ttl),
    };
    pool.renew(id, ttl, now, None);
    Renewal::Renewed
}

/// Ends the session `id` for `reason`, or as expired if past its expiry. `None` if the pool has no session
/// `id`.
pub fn end(pool: &mut Pool, id: SessionId, reason: EndReason, now: RegistryTime) -> Option<Ending> {
    let over = pool.expiry_of(pool.get(id)?) <= now;
    take_out(pool, id, if over { EndReason::Expired } else { reason })
}

/// Removes `user` from a live session with several users. Returns `false` if nothing changed: the only user
/// of a session gives the seat back by [`end`].
pub fn leave(pool: &mut Pool, id: SessionId, user: &UserId, now: RegistryTime) -> bool {
    let live = pool.get(id).is_some_and(|session| pool.expiry_of(session) > now);
    live && pool.leave(id, user)
}

/// Ends every session for `reason`. Sessions past their expiry end as expired.
pub fn end_all(pool: &mut Pool, reason: EndReason, now: RegistryTime) -> Vec<Ending> {
    let mut ended = forget_over(pool, now);
    let all: Vec<_> = pool.iter().map(|session| session.id).collect();
    ended.extend(take_out_all(pool, &all, reason));
    ended
}

/// Applies `terms` to the pool if their version is newer, and their TTL alone if the version is equal. Returns the
/// ended sessions.
///
/// Sessions past their expiry, under the old terms or the new, end as expired. A closed entitlement ends
/// every remaining session.
pub fn revise(pool: &mut Pool, terms: Terms, now: RegistryTime) -> Vec<Ending> {
    // Old terms come first: an extended entitlement does not revive expired sessions.
    let mut ended = forget_over(pool, now);
    if pool.learn(terms) {
        ended.extend(forget_over(pool, now));
    }
    if pool.terms().is_some_and(|terms| terms.standing == Standing::Closed) {
        ended.extend(end_all(pool, EndReason::EntitlementEnded, now));
    }
    ended
}

/// Ends every session past its expiry at `now`, as expired.
pub fn forget_over(pool: &mut Pool, now: RegistryTime) -> Vec<Ending> {
    if pool.next_expiry().is_none_or(|next| next > now) {
        return Vec::new();
    }
    let over = pool.over(now);
    take_out_all(pool, &over, EndReason::Expired)
}

/// Restores a session that is live in the ledger into a pool of the given kind.
///
/// If heartbeats keep sessions alive, the session gets a full TTL from `now`, since the holder could not
/// heartbeat meanwhile: the longer of the session's TTL and the pool's, since the holder heartbeats by the TTL of the
/// last answer. Otherwise the session keeps its expiry. Does nothing if the pool already has the holder or the id.
pub fn restore(pool: &mut Pool, kind: PoolKind, session: Session, now: RegistryTime) {
    if pool.held_by(&session.holder).is_some() || pool.get(session.id).is_some() {
        return;
    }
    let ttl = pool.longest_ttl(session.ttl);
    pool.insert(if kind.has_heartbeats() {
        Session { last_heartbeat: now, ttl, ..session }
    } else {
        session
    });
}

/// Gives every session with heartbeats a full TTL from `now`, as [`restore`] does: the registry stood still until `now`, so
/// no holder could heartbeat.
pub fn resume(pool: &mut Pool, kind: PoolKind, now: RegistryTime) {
    if !kind.has_heartbeats() {
        return;
    }
    let mut sessions: Vec<_> =
        pool.iter().map(|session| (session.started, session.id, session.ttl)).collect();
    // In the order of the new ranks: each session goes to the end of a queue at once.
    sessions.sort_unstable();
    for (_, id, ttl) in sessions {
        pool.renew(id, pool.longest_ttl(ttl), now, None);
    }
}

/// The state of a decision on a claim.
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
        // 2. The claim names a live session of its own holder.
        if let Some(id) = self.named_own() {
            self.go_on(id);
            return Outcome::Refreshed(id);
        }
        // 3. The holder already has a live session.
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
            self.end_named(self.claim.replace.filter(|named| named.is_handed_over));
            return self.take_seat();
        }
        // 5. The pool is full.
        if !self.may_make_room() {
            return Outcome::Denied(self.full());
        }
        if self.is_far_above_limit() {
            return self.evict_some();
        }
        self.end_named(self.claim.replace);
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

    /// Returns the session named by the claim, if live in the pool and owned by the holder.
    fn named_own(&self) -> Option<SessionId> {
        let named = self.pool.get(self.claim.session?)?;
        let own = match self.policy.when_named {
            WhenNamed::SameHolder => named.holder == self.claim.holder,
            WhenNamed::SameDevice => named.holder.device() == self.claim.holder.device(),
        };
        own.then_some(named.id)
    }

    /// Ends the session `named` by the claim, if live in the pool.
    fn end_named(&mut self, named: Option<Replacement>) {
        let ending = named.and_then(|named| take_out(self.pool, named.session, named.reason()));
        self.ended.extend(ending);
    }

    /// Returns `true` if ending sessions can bring a full pool below its limit. Unknown terms never evict.
    fn may_make_room(&self) -> bool {
        let limit = self.terms.limit.0;
        let names_one = self.claim.replace.is_some_and(|named| self.pool.get(named.session).is_some());
        let one_is_enough = self.pool.live() == limit;
        limit > 0
            && self.policy.terms.is_some()
            && (self.policy.when_full == WhenFull::Evict || (names_one && one_is_enough))
    }

    /// Ends the session `held` for `reason` and admits a new session in the seat, if the pool stays within
    /// its limit.
    ///
    /// A pool can be above a lowered limit. An evicting policy then evicts the stalest sessions as well. A
    /// denying policy keeps the old session, because a holder with a live session is never told "full".
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

    /// Renews the session `id` for the claim's user. The answer tells the interval of heartbeats to this user alone, so a
    /// session with other users keeps a longer TTL.
    fn go_on(&mut self, id: SessionId) {
        let user = &self.claim.user;
        let shared = self.pool.get(id).filter(|session| session.users.iter().any(|each| each != user));
        let shortest = shared.map_or(Span::ZERO, |session| session.ttl);
        self.pool.renew(id, self.terms.ttl.max(shortest), self.now, Some(user));
    }

    /// Returns `true` if a free seat takes more than [`EVICTIONS_MAX`] evictions.
    fn is_far_above_limit(&self) -> bool {
        self.pool.live().saturating_sub(self.terms.limit.0) >= EVICTIONS_MAX
    }

    /// Evicts the [`EVICTIONS_MAX`] stalest sessions.
    fn evict_some(&mut self) -> Outcome {
        for _ in 0..EVICTIONS_MAX {
            self.evict_stalest();
        }
        Outcome::MakingRoom
    }

    /// Evicts the stalest sessions until a seat is free. At most [`EVICTIONS_MAX`] evictions are needed,
    /// because `is_far_above_limit` has returned `false`.
    fn evict_below_limit(&mut self) {
        while self.pool.live() >= self.terms.limit.0 && self.evict_stalest() {}
    }

    /// Evicts the stalest session. Returns `false` if the pool is empty.
    fn evict_stalest(&mut self) -> bool {
        let Some(stalest) = self.pool.stalest().map(|session| session.id) else { return false };
        self.ended.extend(take_out(self.pool, stalest, EndReason::Evicted));
        true
    }

    fn take_seat(&mut self) -> Outcome {
        let is_handed_over = self.claim.replace.is_some_and(|named| named.is_handed_over);
        let id = if is_handed_over { self.fresh.with_handed_over_seat() } else { self.fresh };
        self.pool.insert(Session {
            id,
            holder: self.claim.holder.clone(),
            users: Users::one(self.claim.user.clone()),
            started: self.now,
            last_heartbeat: self.now,
            ttl: self.terms.ttl,
            tier: self.claim.tier,
        });
        Outcome::Admitted(id)
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
