//! The live sessions of a pool, indexed for the rule.
//!
//! Invariant: a holder has at most one session in a pool, and every session is in exactly one expiry queue.

mod index;
mod queue;

use std::iter;

use slab::Slab;
use smallvec::SmallVec;

use crate::{Holder, RegistryTime, Seats, Session, SessionId, Span, Terms, UserId};
use index::Index;
use queue::{Queue, Queued};

/// Largest pool without an index. Scanning so few sessions is cheaper than two hash tables.
const SESSIONS_WITHOUT_INDEX_MAX: usize = 8;

/// The live sessions of a pool, and the newest terms seen by the pool.
///
/// Every operation takes constant time in the number of seats, unless its doc states a different cost.
/// Invariant: every session is in the index, if the pool has an index, and in the queue of its TTL.
///
/// A pool too large to load for each decision can be a [partial view](Self::in_view). Methods of a partial
/// view then cover the loaded sessions only, unless their docs say otherwise.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    terms: Option<Terms>,
    sessions: Slab<Queued>,
    // Boxed: most pools are small and never have an index.
    index: Option<Box<Index>>,
    // A queue for each TTL in use, so nearly always a single queue. Within a queue the order of last
    // heartbeats equals the order of expiry, so expiry needs no second index.
    queues: SmallVec<[Queue; 1]>,
    // Boxed: pools kept in memory are always loaded completely.
    others: Option<Box<Others>>,
}

/// The sessions of a pool outside a partial view. Each is live; only the count and a bound are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// Number of sessions outside the view.
    pub count: u32,
    /// Lower bound of last heartbeat + TTL over the sessions outside the view.
    pub silent_from: RegistryTime,
}

impl Pool {
    /// Creates an empty pool with the given terms.
    pub fn new(terms: Option<Terms>) -> Self {
        Self { terms, ..Self::default() }
    }

    /// Creates a partial view of a pool, with the sessions required by a [`LoadBound`](crate::LoadBound).
    ///
    /// The caller guarantees distinct holders and distinct ids over the whole pool.
    pub fn in_view(
        terms: Option<Terms>,
        sessions: impl IntoIterator<Item = Session>,
        others: Others,
    ) -> Self {
        let others = (others.count > 0).then(|| Box::new(others));
        let mut pool = Self { others, ..Self::new(terms) };
        for session in sessions {
            pool.insert(session);
        }
        pool
    }

    /// Returns the newest terms seen by the pool.
    pub fn terms(&self) -> Option<Terms> {
        self.terms
    }

    /// Returns the number of sessions, including sessions outside the view and sessions past their expiry
    /// that were not ended yet.
    pub fn live(&self) -> u32 {
        self.sessions.len() as u32 + self.others.as_ref().map_or(0, |others| others.count)
    }

    /// Returns `true` if the pool has no session.
    pub fn is_empty(&self) -> bool {
        self.live() == 0
    }

    /// Returns the session `id`.
    pub fn get(&self, id: SessionId) -> Option<&Session> {
        Some(&self.sessions[self.slot_of(id)? as usize].session)
    }

    /// Returns the session of `holder`.
    pub fn held_by(&self, holder: &Holder) -> Option<&Session> {
        match &self.index {
            Some(index) => Some(self.session(index.by_holder(&self.sessions, holder)?)),
            None => self.iter().find(|session| session.holder == *holder),
        }
    }

    /// Returns the first session in the order of eviction (last heartbeat, start, id).
    pub fn stalest(&self) -> Option<&Session> {
        self.queues.iter().map(|queue| self.session(queue.oldest())).min_by_key(|session| session.rank())
    }

    /// Iterates over the sessions, grouped by TTL, each group from the stalest to the freshest.
    pub fn iter(&self) -> impl Iterator<Item = &Session> {
        self.queues.iter().flat_map(|queue| queue.oldest_first(&self.sessions))
    }

    /// Iterates over the sessions in the order of eviction (last heartbeat, start, id). Lazy: the cost grows
    /// with the number of sessions taken.
    pub fn stalest_first(&self) -> impl Iterator<Item = &Session> {
        let queues = self.queues.iter().map(|queue| queue.oldest_first(&self.sessions).peekable());
        let mut queues: SmallVec<[_; 1]> = queues.collect();
        iter::from_fn(move || {
            let heads = queues.iter_mut().filter_map(|queue| Some((queue.peek()?.rank(), queue)));
            heads.min_by_key(|(rank, _)| *rank)?.1.next()
        })
    }

    /// Iterates over the sessions renewed after `then`. The cost grows with the number of renewed sessions
    /// only.
    pub fn renewed_since(&self, then: RegistryTime) -> impl Iterator<Item = &Session> {
        self.queues.iter().flat_map(move |queue| {
            queue.newest_first(&self.sessions).take_while(move |session| session.last_heartbeat > then)
        })
    }

    /// Returns the expiry of `session`: last heartbeat + TTL, or the end of the entitlement if earlier.
    pub fn expiry_of(&self, session: &Session) -> RegistryTime {
        self.within_entitlement(session.silent_until())
    }

    /// Returns the earliest expiry in the pool, `None` for an empty pool. For a partial view the result is a
    /// lower bound.
    pub fn next_expiry(&self) -> Option<RegistryTime> {
        let in_view = self.queues.iter().map(|queue| self.session(queue.oldest()).silent_until()).min();
        let others = self.others.as_ref().map(|others| others.silent_from);
        let silent = in_view.into_iter().chain(others).min()?;
        Some(self.within_entitlement(silent))
    }

    /// Returns the earliest time at which the pool falls below `limit` if no holder renews. `None` if the
    /// pool is already below, or under a limit of 0. The cost grows with the number of sessions above the
    /// limit.
    pub fn below_limit_at(&self, limit: Seats) -> Option<RegistryTime> {
        let above = (self.live() as usize).checked_sub(limit.0 as usize)?;
        let mut soonest: Vec<_> = self
            .queues
            .iter()
            .flat_map(|queue| queue.oldest_first(&self.sessions).take(above + 1))
            .map(Session::silent_until)
            .collect();
        soonest.sort_unstable();
        soonest.get(above).map(|&at| self.within_entitlement(at))
    }

    /// Adds a session. The holder and the id must be new to the pool.
    pub(crate) fn insert(&mut self, session: Session) {
        debug_assert!(self.held_by(&session.holder).is_none());
        if self.sessions.is_empty() {
            // Most pools of subscribers hold one or two sessions: the default growth to 4 slots would waste
            // memory.
            self.sessions.reserve_exact(1);
        }
        let slot = self.sessions.insert(Queued::alone(session)) as u32;
        match &mut self.index {
            Some(index) => index.insert(&self.sessions, slot),
            None if self.sessions.len() > SESSIONS_WITHOUT_INDEX_MAX => {
                self.index = Some(Box::new(Index::from_slab(&self.sessions)));
            }
            None => {}
        }
        self.enqueue(slot);
    }

    /// Removes the session `id`.
    pub(crate) fn remove(&mut self, id: SessionId) -> Option<Session> {
        let slot = self.slot_of(id)?;
        self.dequeue(slot);
        if let Some(index) = &mut self.index {
            index.remove(&self.sessions, slot);
        }
        Some(self.sessions.remove(slot as usize).session)
    }

    /// Renews the session `id` at `now` for `ttl`. A given `user` joins the session.
    pub(crate) fn renew(&mut self, id: SessionId, ttl: Span, now: RegistryTime, user: Option<&UserId>) {
        let Some(slot) = self.slot_of(id) else { return };
        self.dequeue(slot);
        let session = &mut self.sessions[slot as usize].session;
        session.last_heartbeat = session.last_heartbeat.max(now);
        session.ttl = ttl;
        if let Some(user) = user {
            session.users.join(user);
        }
        self.enqueue(slot);
    }

    /// Removes `user` from a session with several users. Returns `false` if nothing changed.
    pub(crate) fn leave(&mut self, id: SessionId, user: &UserId) -> bool {
        self.slot_of(id).is_some_and(|slot| self.sessions[slot as usize].session.users.leave(user))
    }

    /// Adopts `terms` if newer than the known terms. Returns `false` if nothing changed.
    pub(crate) fn learn(&mut self, terms: Terms) -> bool {
        let before = self.terms;
        self.terms = Terms::newest(before, Some(terms));
        self.terms != before
    }

    /// Returns the sessions past their expiry at `now`. The cost grows with the number of returned sessions
    /// only.
    pub(crate) fn over(&self, now: RegistryTime) -> Vec<SessionId> {
        let all = self.within_entitlement(RegistryTime::from_millis(u64::MAX)) <= now;
        self.queues
            .iter()
            .flat_map(|queue| {
                queue.oldest_first(&self.sessions).take_while(|session| all || session.silent_until() <= now)
            })
            .map(|session| session.id)
            .collect()
    }

    fn within_entitlement(&self, expiry: RegistryTime) -> RegistryTime {
        let ends_at = self.terms.and_then(|terms| terms.ends_at);
        ends_at.map_or(expiry, |ends_at| expiry.min(ends_at))
    }

    fn session(&self, slot: u32) -> &Session {
        &self.sessions[slot as usize].session
    }

    fn slot_of(&self, id: SessionId) -> Option<u32> {
        match &self.index {
            Some(index) => index.by_id(&self.sessions, id),
            None => {
                let mut held = self.sessions.iter();
                held.find(|(_, queued)| queued.session.id == id).map(|(slot, _)| slot as u32)
            }
        }
    }

    fn enqueue(&mut self, slot: u32) {
        let ttl = self.session(slot).ttl;
        match self.queues.iter_mut().find(|queue| queue.ttl() == ttl) {
            Some(queue) => queue.insert(&mut self.sessions, slot),
            None => self.queues.push(Queue::of_one(ttl, slot)),
        }
    }

    fn dequeue(&mut self, slot: u32) {
        let ttl = self.session(slot).ttl;
        let Some(at) = self.queues.iter().position(|queue| queue.ttl() == ttl) else {
            return;
        };
        let emptied = self.queues[at].remove(&mut self.sessions, slot);
        if emptied {
            self.queues.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests;
