//! A bucket: pools, an index of sessions, the due-index, the journal.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};
use seatkeeper_core::{
    Authority, Bucket, EndReason, Ending, Event, LatestHeartbeat, Origin, Outcome, PoolId, RegistryTime,
    Session, SessionId, Terms, rule,
};
use slab::Slab;

use super::due_queue::DueQueue;
use super::journal::Journal;
use super::session_index::SessionIndex;
use crate::Error;
use crate::contract::{
    Claimed, Ended, EndedAll, Heartbeat, JournalEntry, Live, PoolView, Receipt, Request, Swept,
};
use crate::open_pool::{Closing, OpenPool, Record as _, RenewalOutcome};

/// The state of a bucket, all under one lock.
pub(super) struct BucketState {
    bucket: Bucket,
    pools: Slab<OpenPool>,
    /// The slot of each pool, by name.
    by_id: HashTable<u32>,
    hasher: DefaultHashBuilder,
    sessions: SessionIndex,
    /// The pools by the lower bound of the time of their next sweep.
    due: DueQueue,
    latest: RegistryTime,
    /// The end of the latest pause of the process that the sessions know of.
    resumed: RegistryTime,
    journal: Journal,
}

impl BucketState {
    pub(super) fn new(bucket: Bucket, epoch: u64) -> Self {
        Self {
            bucket,
            pools: Slab::new(),
            by_id: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            sessions: SessionIndex::default(),
            due: DueQueue::default(),
            latest: RegistryTime::default(),
            resumed: RegistryTime::default(),
            journal: Journal::new(epoch),
        }
    }

    /// Returns the time of the next step, never earlier than an earlier step: readings taken before the lock
    /// was acquired may arrive out of order.
    pub(super) fn not_before(&mut self, reading: RegistryTime) -> RegistryTime {
        self.latest = self.latest.max(reading);
        self.latest
    }

    /// Gives every session a full TTL from `resumed`, the end of the latest pause of the process, unless the sessions
    /// have it.
    pub(super) fn resume(&mut self, resumed: RegistryTime) {
        if resumed <= self.resumed {
            return;
        }
        self.resumed = resumed;
        for (_, open) in &mut self.pools {
            rule::resume(&mut open.pool, open.id.kind, resumed);
        }
    }

    pub(super) fn journal(&self) -> &Journal {
        &self.journal
    }

    pub(super) fn journal_mut(&mut self) -> &mut Journal {
        &mut self.journal
    }

    pub(super) fn receipt(&self) -> Receipt {
        self.place(self.journal.end())
    }

    /// Returns the oldest events of the journal, at most `max`.
    pub(super) fn waiting(&self, max: usize) -> Vec<JournalEntry> {
        let entry = |(position, event): (u64, &Event)| JournalEntry {
            receipt: self.place(position),
            event: event.clone(),
        };
        self.journal.waiting(max).map(entry).collect()
    }

    fn place(&self, position: u64) -> Receipt {
        Receipt { bucket: self.bucket, epoch: self.journal.epoch(), position }
    }

    pub(super) fn due(&self) -> Option<RegistryTime> {
        self.due.first().map(|slot| due_of(&self.pools, slot))
    }

    pub(super) fn is_open(&self, id: &PoolId) -> bool {
        self.slot_of(id).is_ok()
    }

    pub(super) fn open(
        &mut self,
        id: &PoolId,
        seq: u64,
        terms: Option<Terms>,
        live: Vec<Session>,
        now: RegistryTime,
    ) {
        if self.is_open(id) {
            return;
        }
        let open = OpenPool::restored(id.clone(), seq, terms, live, now);
        let slot = self.pools.insert(open) as u32;
        let (pools, hasher) = (&self.pools, &self.hasher);
        self.by_id
            .insert_unique(hasher.hash_one(id), slot, |&slot| hasher.hash_one(&pools[slot as usize].id));
        for session in self.pools[slot as usize].pool.iter() {
            self.sessions.insert(session.id, slot);
        }
        let ended = self.pools[slot as usize].settle(now, &mut self.journal);
        self.follow(slot, ids(&ended), now);
    }

    /// Decides a claim. Returns `None` for [`Outcome::MakingRoom`].
    pub(super) fn claim(
        &mut self,
        request: Request<'_>,
        fresh: SessionId,
        now: RegistryTime,
    ) -> Result<Option<Claimed>, Error> {
        let slot = self.slot_of(request.pool)?;
        let (answer, decision) = self.pools[slot as usize].claim(request, fresh, now, &mut self.journal);
        if let Outcome::Admitted(id) = decision.outcome {
            self.sessions.insert(id, slot);
        }
        self.follow(slot, ids(&decision.ended), now);
        let open = &self.pools[slot as usize];
        let (live, limit, receipt) = (open.pool.live(), open.limit(), self.receipt());
        Ok(answer.map(|answer| Claimed { answer, live, limit, receipt }))
    }

    pub(super) fn heartbeat(&mut self, id: SessionId, who: &Authority, now: RegistryTime) -> Heartbeat {
        let Some(slot) = self.pool_of(id) else {
            return Heartbeat::Missing;
        };
        match self.pools[slot as usize].heartbeat(id, who, now, &mut self.journal) {
            RenewalOutcome::Renewed(liveness) => Heartbeat::Renewed(liveness),
            RenewalOutcome::Over { last_heartbeat } => {
                self.follow(slot, [id], now);
                Heartbeat::Over { last_heartbeat, receipt: self.receipt() }
            }
            RenewalOutcome::Missing => Heartbeat::Missing,
        }
    }

    pub(super) fn end(
        &mut self,
        id: SessionId,
        who: &Authority,
        reason: EndReason,
        origin: &Origin,
        now: RegistryTime,
    ) -> Ended {
        let Some(slot) = self.pool_of(id) else {
            return Ended::Missing;
        };
        match self.pools[slot as usize].end(id, who, reason, origin, now, &mut self.journal) {
            Closing::Ended(reason) => {
                self.follow(slot, [id], now);
                Ended::Now { reason, receipt: self.receipt() }
            }
            Closing::Left => Ended::Left,
            Closing::Missing => Ended::Missing,
        }
    }

    pub(super) fn end_all(
        &mut self,
        id: &PoolId,
        reason: EndReason,
        origin: &Origin,
        now: RegistryTime,
    ) -> Result<EndedAll, Error> {
        let slot = self.slot_of(id)?;
        let ended = self.pools[slot as usize].end_all(reason, origin, now, &mut self.journal);
        self.follow(slot, ids(&ended), now);
        Ok(EndedAll { count: ended.len(), receipt: self.receipt() })
    }

    pub(super) fn revise(
        &mut self,
        id: &PoolId,
        terms: Terms,
        origin: &Origin,
        now: RegistryTime,
    ) -> Result<EndedAll, Error> {
        let slot = self.slot_of(id)?;
        let ended = self.pools[slot as usize].revise(terms, origin, now, &mut self.journal);
        self.follow(slot, ids(&ended), now);
        Ok(EndedAll { count: ended.len(), receipt: self.receipt() })
    }

    pub(super) fn session(&mut self, id: SessionId, who: &Authority, now: RegistryTime) -> Option<Live> {
        let slot = self.covered(id, who)?;
        self.forget_over(slot, now);
        let open = &self.pools[slot as usize];
        Some(open.live_view(open.pool.get(id)?, now))
    }

    pub(super) fn view(&mut self, id: &PoolId, max: usize, now: RegistryTime) -> Result<PoolView, Error> {
        let slot = self.slot_of(id)?;
        self.forget_over(slot, now);
        let open = &self.pools[slot as usize];
        let sessions =
            open.pool.stalest_first().take(max).map(|session| open.live_view(session, now)).collect();
        Ok(PoolView { live: open.pool.live(), terms: open.pool.terms(), sessions })
    }

    pub(super) fn sweep(&mut self, pools_max: usize, now: RegistryTime) -> Swept {
        let mut ended = 0;
        for _ in 0..pools_max {
            let Some(slot) = self.due.first().filter(|&slot| due_of(&self.pools, slot) <= now) else {
                return Swept { ended, more: false };
            };
            self.due.remove(slot, |slot| due_of(&self.pools, slot));
            let acknowledged = self.journal.acknowledged();
            let sweeping = self.pools[slot as usize].sweep(acknowledged, now, &mut self.journal);
            ended += sweeping.ended.len();
            self.follow(slot, ids(&sweeping.ended), now);
            if sweeping.may_close {
                self.close(slot);
            }
        }
        Swept { ended, more: self.due().is_some_and(|at| at <= now) }
    }

    pub(super) fn renewed_since(&self, since: RegistryTime) -> Vec<LatestHeartbeat> {
        self.pools
            .iter()
            .flat_map(|(_, open)| open.pool.renewed_since(since))
            .map(Session::latest_heartbeat)
            .collect()
    }

    fn forget_over(&mut self, slot: u32, now: RegistryTime) {
        let ended = self.pools[slot as usize].forget_over(now, &mut self.journal);
        self.follow(slot, ids(&ended), now);
    }

    /// Updates the indexes after a step on a pool in which the sessions `ended` ended.
    fn follow(&mut self, slot: u32, ended: impl IntoIterator<Item = SessionId>, now: RegistryTime) {
        for id in ended {
            self.sessions.remove(id, slot);
        }
        let open = &mut self.pools[slot as usize];
        let before = open.due;
        let due = open.become_due(now);
        if before != Some(due) {
            self.due.update(slot, |slot| due_of(&self.pools, slot));
        }
    }

    fn close(&mut self, slot: u32) {
        self.due.remove(slot, |slot| due_of(&self.pools, slot));
        let open = self.pools.remove(slot as usize);
        if let Ok(entry) = self.by_id.find_entry(self.hasher.hash_one(&open.id), |&other| other == slot) {
            entry.remove();
        }
    }

    fn slot_of(&self, id: &PoolId) -> Result<u32, Error> {
        let is_it = |&slot: &u32| self.pools[slot as usize].id == *id;
        self.by_id.find(self.hasher.hash_one(id), is_it).copied().ok_or(Error::PoolNotOpen)
    }

    /// Returns the slot of a session's pool.
    fn pool_of(&self, id: SessionId) -> Option<u32> {
        self.sessions.find(id, |slot| self.pools[slot as usize].pool.get(id).is_some())
    }

    /// Returns the pool's slot of a session that `who` may touch.
    fn covered(&self, id: SessionId, who: &Authority) -> Option<u32> {
        let slot = self.pool_of(id)?;
        let open = &self.pools[slot as usize];
        who.covers(&open.id, open.pool.get(id)?).then_some(slot)
    }
}

/// Returns the time of a pool's next sweep. Every pool of the due-index has a time.
fn due_of(pools: &Slab<OpenPool>, slot: u32) -> RegistryTime {
    pools[slot as usize].due.unwrap_or(RegistryTime::MAX)
}

fn ids(ended: &[Ending]) -> impl Iterator<Item = SessionId> {
    ended.iter().map(|ending| ending.session.id)
}
