//! The live sessions of one pool, indexed for the rule.

mod index;
mod queue;

use std::iter;

use slab::Slab;
use smallvec::SmallVec;

use crate::{Holder, RegistryTime, Seats, Session, SessionId, Span, Terms, UserId};
use index::Index;
use queue::{Queue, Queued};

/// Up to so many sessions are looked through; the two tables of an index would cost more than that saves.
const SESSIONS_WITHOUT_INDEX_MAX: usize = 8;

/// The live sessions of one pool, and the newest terms it has seen.
///
/// A pool that is too large to be looked at as a whole for each decision can be [in view](Self::in_view) in
/// part; unless said otherwise, what is told of sessions is then told of those in view.
///
/// Holds at most one session per holder. Every operation takes constant time, whatever the number of
/// seats, but for those that say otherwise. What must always hold: each session is in the
/// index, if there is one, and in the one queue of its TTL.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    terms: Option<Terms>,
    sessions: Slab<Queued>,
    // Boxed, for most pools are small and never have one.
    index: Option<Box<Index>>,
    // One queue for each TTL in use, hence nearly always one: within a queue, the order of the last
    // heartbeat is also the order of expiry, and no second index is needed.
    queues: SmallVec<[Queue; 1]>,
    // Boxed, for the pools that stay in memory are always in view as a whole.
    others: Option<Box<Others>>,
}

/// Sessions of a pool that are not in view: they are live, and of the rest only so much is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// How many they are.
    pub count: u32,
    /// None of them falls silent before: a lower bound of last heartbeat + TTL.
    pub silent_from: RegistryTime,
}

impl Pool {
    /// A pool with no session, which knows no terms or those it is given.
    pub fn new(terms: Option<Terms>) -> Self {
        Self { terms, ..Self::default() }
    }

    /// A pool of which only some sessions are in view: as many as a [`Sight`](crate::Sight) asks for. The
    /// holders and ids of all sessions are distinct.
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

    /// The newest terms seen.
    pub fn terms(&self) -> Option<Terms> {
        self.terms
    }

    /// How many sessions are in it, those included that are over and not yet forgotten.
    pub fn live(&self) -> u32 {
        self.sessions.len() as u32 + self.others.as_ref().map_or(0, |others| others.count)
    }

    /// Whether nobody is in it.
    pub fn is_empty(&self) -> bool {
        self.live() == 0
    }

    /// The session of this name.
    pub fn get(&self, id: SessionId) -> Option<&Session> {
        Some(&self.sessions[self.slot_of(id)? as usize].session)
    }

    /// The session of this holder.
    pub fn held_by(&self, holder: &Holder) -> Option<&Session> {
        match &self.index {
            Some(index) => Some(self.session(index.by_holder(&self.sessions, holder)?)),
            None => self.iter().find(|session| session.holder == *holder),
        }
    }

    /// The session that is least in the order (last heartbeat, start, id).
    pub fn stalest(&self) -> Option<&Session> {
        self.queues.iter().map(|queue| self.session(queue.oldest())).min_by_key(|session| session.rank())
    }

    /// All sessions: by TTL, and then from the stalest to the freshest.
    pub fn iter(&self) -> impl Iterator<Item = &Session> {
        self.queues.iter().flat_map(|queue| queue.oldest_first(&self.sessions))
    }

    /// All sessions, the least in the order (last heartbeat, start, id) first. Takes time for each that
    /// is looked at.
    pub fn stalest_first(&self) -> impl Iterator<Item = &Session> {
        let queues = self.queues.iter().map(|queue| queue.oldest_first(&self.sessions).peekable());
        let mut queues: SmallVec<[_; 1]> = queues.collect();
        iter::from_fn(move || {
            let heads = queues.iter_mut().filter_map(|queue| Some((queue.peek()?.rank(), queue)));
            heads.min_by_key(|(rank, _)| *rank)?.1.next()
        })
    }

    /// The sessions renewed after `then`. Takes time for each of them, not for the others.
    pub fn renewed_since(&self, then: RegistryTime) -> impl Iterator<Item = &Session> {
        self.queues.iter().flat_map(move |queue| {
            queue.newest_first(&self.sessions).take_while(move |session| session.last_heartbeat > then)
        })
    }

    /// When `session` is over unless renewed: its last heartbeat and its TTL, or the entitlement's end.
    pub fn expiry_of(&self, session: &Session) -> RegistryTime {
        self.within_entitlement(session.silent_until())
    }

    /// When the next session is over unless renewed, or a lower bound of it where that one is not in view;
    /// none if nobody is in.
    pub fn next_expiry(&self) -> Option<RegistryTime> {
        let in_view = self.queues.iter().map(|queue| self.session(queue.oldest()).silent_until()).min();
        let others = self.others.as_ref().map(|others| others.silent_from);
        let silent = in_view.into_iter().chain(others).min()?;
        Some(self.within_entitlement(silent))
    }

    /// When the pool will be below `limit` at the earliest, if nobody renews; none for a limit of 0.
    /// Takes time for the number of sessions above the limit.
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

    /// Adds a session; its holder and id must not be in yet.
    pub(crate) fn insert(&mut self, session: Session) {
        debug_assert!(self.held_by(&session.holder).is_none());
        if self.sessions.is_empty() {
            // Most pools of subscribers hold one or two: the usual first growth to 4 would waste it.
            self.sessions.reserve_exact(1);
        }
        let slot = self.sessions.insert(Queued::alone(session)) as u32;
        match &mut self.index {
            Some(index) => index.insert(&self.sessions, slot),
            None if self.sessions.len() > SESSIONS_WITHOUT_INDEX_MAX => {
                self.index = Some(Box::new(Index::of(&self.sessions)));
            }
            None => {}
        }
        self.enqueue(slot);
    }

    /// Takes a session out.
    pub(crate) fn remove(&mut self, id: SessionId) -> Option<Session> {
        let slot = self.slot_of(id)?;
        self.dequeue(slot);
        if let Some(index) = &mut self.index {
            index.remove(&self.sessions, slot);
        }
        Some(self.sessions.remove(slot as usize).session)
    }

    /// Renews a session at `now` for `ttl`, and lets `user`, if given, share it.
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

    /// Takes `user` out of a session that others share, and says whether it did.
    pub(crate) fn leave(&mut self, id: SessionId, user: &UserId) -> bool {
        self.slot_of(id).is_some_and(|slot| self.sessions[slot as usize].session.users.leave(user))
    }

    /// Takes over `terms` if they are newer than what the pool knows, and says whether it did.
    pub(crate) fn learn(&mut self, terms: Terms) -> bool {
        let before = self.terms;
        self.terms = Terms::newest(before, Some(terms));
        self.terms != before
    }

    /// The sessions that are over at `now`. Takes time for each of them, not for the others.
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
