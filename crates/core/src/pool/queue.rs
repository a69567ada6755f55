//! The sessions of one TTL in the order of eviction, threaded through the slab that holds them.
//!
//! The registry's clock never goes back, so a renewed session belongs at the end: only sessions that
//! share its millisecond have to be looked at. That makes a heartbeat cost the same in a pool of ten
//! and of a hundred thousand, and eight bytes a session.

use std::iter;

use slab::Slab;

use crate::{Session, Span};

const NONE: u32 = u32::MAX;

/// A session and its neighbours in the queue of its TTL.
#[derive(Clone, Debug)]
pub(super) struct Queued {
    pub(super) session: Session,
    older: u32,
    newer: u32,
}

impl Queued {
    /// A session that is in no queue yet.
    pub(super) fn alone(session: Session) -> Self {
        Self { session, older: NONE, newer: NONE }
    }
}

/// A queue that is never empty.
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

    pub(super) fn oldest(&self) -> u32 {
        self.oldest
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

    /// Puts the session where its rank belongs.
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

    /// Takes the session out, and says whether it was the last: then the queue must be thrown away.
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

    /// Makes `older` and `newer` neighbours; one of them may be the end of the queue.
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
