//! The sessions of a large pool: a slab with hash tables, and a queue for each TTL.
//!
//! Invariant: every session is in both hash tables and in the queue of its TTL.

use std::iter;

use slab::Slab;
use smallvec::SmallVec;

use super::index::Index;
use super::queue::{Queue, Queued};
use crate::{Holder, Session, SessionId, Users};

/// Sessions whose number has no bound.
#[derive(Clone, Debug, Default)]
pub(super) struct Many {
    sessions: Slab<Queued>,
    index: Index,
    // A queue for each TTL in use, so nearly always a single queue. Within a queue the order of last
    // heartbeats equals the order of expiry, so expiry needs no second index.
    queues: SmallVec<[Queue; 1]>,
}

impl Many {
    pub(super) fn len(&self) -> usize {
        self.sessions.len()
    }

    pub(super) fn get(&self, id: SessionId) -> Option<&Session> {
        Some(self.session(self.index.by_id(&self.sessions, id)?))
    }

    pub(super) fn held_by(&self, holder: &Holder) -> Option<&Session> {
        Some(self.session(self.index.by_holder(&self.sessions, holder)?))
    }

    /// Iterates over the sessions of each TTL, from the stalest to the freshest.
    pub(super) fn by_ttl(&self) -> impl Iterator<Item = impl Iterator<Item = &Session>> {
        self.queues.iter().map(|queue| queue.oldest_first(&self.sessions))
    }

    /// Iterates over the sessions of each TTL, from the freshest to the stalest.
    pub(super) fn by_ttl_newest_first(&self) -> impl Iterator<Item = impl Iterator<Item = &Session>> {
        self.queues.iter().map(|queue| queue.newest_first(&self.sessions))
    }

    /// Iterates over the sessions in the order of eviction.
    pub(super) fn stalest_first(&self) -> impl Iterator<Item = &Session> {
        let mut queues: SmallVec<[_; 1]> = self.by_ttl().map(Iterator::peekable).collect();
        iter::from_fn(move || {
            let heads = queues.iter_mut().filter_map(|queue| Some((queue.peek()?.rank(), queue)));
            heads.min_by_key(|(rank, _)| *rank)?.1.next()
        })
    }

    pub(super) fn insert(&mut self, session: Session) {
        let slot = self.sessions.insert(Queued::alone(session)) as u32;
        self.index.insert(&self.sessions, slot);
        self.enqueue(slot);
    }

    pub(super) fn remove(&mut self, id: SessionId) -> Option<Session> {
        let slot = self.index.by_id(&self.sessions, id)?;
        self.dequeue(slot);
        self.index.remove(&self.sessions, slot);
        Some(self.sessions.remove(slot as usize).session)
    }

    /// Changes the session `id`, and its place in the order. The id and the holder stay.
    pub(super) fn change(&mut self, id: SessionId, change: impl FnOnce(&mut Session)) {
        let Some(slot) = self.index.by_id(&self.sessions, id) else { return };
        self.dequeue(slot);
        change(&mut self.sessions[slot as usize].session);
        self.enqueue(slot);
    }

    /// Returns the users of the session `id`. Users do not affect the order.
    pub(super) fn users_mut(&mut self, id: SessionId) -> Option<&mut Users> {
        let slot = self.index.by_id(&self.sessions, id)?;
        Some(&mut self.sessions[slot as usize].session.users)
    }

    fn session(&self, slot: u32) -> &Session {
        &self.sessions[slot as usize].session
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

    /// Asserts the invariant.
    #[cfg(test)]
    pub(super) fn assert_sound(&self) {
        let live = self.len();
        assert_eq!(self.index.sizes(), (live, live), "each session is in both tables");
        let mut queued = 0;
        for (at, queue) in self.queues.iter().enumerate() {
            let forward: Vec<_> = queue.oldest_first(&self.sessions).collect();
            let mut backward: Vec<_> = queue.newest_first(&self.sessions).collect();
            backward.reverse();
            assert!(!forward.is_empty(), "no queue is empty");
            assert_eq!(forward, backward, "a queue reads the same from both ends");
            assert!(
                forward.is_sorted_by_key(|session| session.rank()),
                "a queue is in the order of eviction"
            );
            assert!(forward.iter().all(|session| session.ttl == queue.ttl()), "a queue has one TTL");
            assert_eq!(self.queues.iter().position(|other| other.ttl() == queue.ttl()), Some(at));
            queued += forward.len();
        }
        assert_eq!(queued, live, "each session is in one queue");
    }
}
