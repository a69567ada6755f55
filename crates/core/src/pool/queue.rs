//! The sessions of a TTL in the order of eviction: a doubly linked list threaded through the slab.
//!
//! The registry's clock never goes back, so a renewed session belongs at the end, behind at most the sessions
//! of the same millisecond. A heartbeat therefore costs the same in a pool of ten and of a hundred thousand.
//! The links take eight bytes per session.

use std::iter;

use slab::Slab;

use crate::{Session, Span};

const NONE: u32 = u32::MAX;

/// A session, linked to its neighbours in the queue of its TTL.
#[derive(Clone, Debug)]
pub(super) struct Queued {
    pub(super) session: Session,
    older: u32,
    newer: u32,
}

impl Queued {
    /// Wraps a session outside every queue.
    pub(super) fn alone(session: Session) -> Self {
        Self { session, older: NONE, newer: NONE }
    }
}

/// The queue of a TTL. Never empty.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    ttl: Span,
    oldest: u32,
    newest: u32,
}

impl Queue {
    pub(super) fn of_one(ttl: Span, slot: u32) -> Self {
        Self { ttl, oldest: slot, newest: slot }
    }

    pub(super) fn ttl(&self) -> Span {
        self.ttl
    }

    pub(super) fn oldest_first<'a>(
        &self,
        slab: &'a Slab<Queued>,
    ) -> impl Iterator<Item = &'a Session> + use<'a> {
        walk(slab, self.oldest, |queued| queued.newer)
    }

    pub(super) fn newest_first<'a>(
        &self,
        slab: &'a Slab<Queued>,
    ) -> impl Iterator<Item = &'a Session> + use<'a> {
        walk(slab, self.newest, |queued| queued.older)
    }

    /// Inserts the session by rank.
    pub(super) fn insert(&mut self, slab: &mut Slab<Queued>, slot: u32) {
        let rank = slab[slot as usize].session.rank();
        let mut older = self.newest;
        while older != NONE && slab[older as usize].session.rank() > rank {
            older = slab[older as usize].older;
        }
        let newer = if older == NONE { self.oldest } else { slab[older as usize].newer };
        slab[slot as usize].older = older;
        slab[slot as usize].newer = newer;
        self.link(slab, older, slot);
        self.link(slab, slot, newer);
    }

    /// Removes the session. Returns `true` if the queue is now empty: the caller then drops the queue.
    pub(super) fn remove(&mut self, slab: &mut Slab<Queued>, slot: u32) -> bool {
        let Queued { older, newer, .. } = slab[slot as usize];
        if older == NONE && newer == NONE {
            return true;
        }
        self.link(slab, older, newer);
        slab[slot as usize].older = NONE;
        slab[slot as usize].newer = NONE;
        false
    }

    /// Links `older` and `newer`. `NONE` on either side stands for an end of the queue.
    fn link(&mut self, slab: &mut Slab<Queued>, older: u32, newer: u32) {
        match older {
            NONE => self.oldest = newer,
            slot => slab[slot as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            slot => slab[slot as usize].older = older,
        }
    }
}

fn walk<'a>(
    slab: &'a Slab<Queued>,
    start: u32,
    next: impl Fn(&Queued) -> u32 + 'a,
) -> impl Iterator<Item = &'a Session> {
    let step = move |queued: &&'a Queued| slab.get(next(queued) as usize);
    iter::successors(slab.get(start as usize), step).map(|queued| &queued.session)
}
