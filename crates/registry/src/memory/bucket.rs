//! One bucket: its pools, the way from a session to its pool, the due-index, the journal.

use std::collections::BTreeSet;
use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use seatkeeper_core::{
    Authority, Bucket, Change, EndReason, Ending, Origin, Outcome, PoolId, Reach, RegistryTime, Session,
    SessionId, Terms,
    rule::{self, Decision, Renewal},
};
use slab::Slab;

use super::journal::Journal;
use super::open_pool::OpenPool;
use crate::Error;
use crate::contract::{
    Answer, Claimed, Ended, EndedAll, Granted, Heartbeat, Live, PoolView, Receipt, Request, Swept,
};

/// All that changes together.
pub(super) struct BucketState {
    bucket: Bucket,
    epoch: u64,
    pools: Slab<OpenPool>,
    /// The way from a pool's name to its slot.
    by_id: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// Which pool each live session is in.
    sessions: HashMap<SessionId, u32>,
    /// For each pool with something to sweep, when that is: a lower bound.
    due: BTreeSet<(RegistryTime, u32)>,
    latest: RegistryTime,
    journal: Journal,
}

impl BucketState {
    pub(super) fn new(bucket: Bucket, epoch: u64) -> Self {
        Self {
            bucket,
            epoch,
            pools: Slab::new(),
            by_id: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            sessions: HashMap::new(),
            due: BTreeSet::new(),
            latest: RegistryTime::default(),
            journal: Journal::default(),
        }
    }

    /// The time of the next step: readings taken before a lock was won may arrive out of order.
    pub(super) fn not_before(&mut self, reading: RegistryTime) -> RegistryTime {
        self.latest = self.latest.max(reading);
        self.latest
    }

    pub(super) fn journal(&self) -> &Journal {
        &self.journal
    }

    pub(super) fn journal_mut(&mut self) -> &mut Journal {
        &mut self.journal
    }

    pub(super) fn receipt(&self) -> Receipt {
        Receipt { bucket: self.bucket, position: self.journal.end() }
    }

    pub(super) fn due(&self) -> Option<RegistryTime> {
        self.due.first().map(|&(at, _)| at)
    }

    pub(super) fn open(
        &mut self,
        id: &PoolId,
        seq: u64,
        terms: Option<Terms>,
        mut live: Vec<Session>,
        now: RegistryTime,
    ) {
        if self.slot_of(id).is_ok() {
            return;
        }
        let mut open = OpenPool::new(id.clone(), seq, self.epoch, terms);
        live.sort_unstable_by_key(|session| (session.started, session.id));
        for session in live {
            rule::restore(&mut open.pool, id.kind, session, now);
        }
        let slot = self.pools.insert(open) as u32;
        let (pools, hasher) = (&self.pools, &self.hasher);
        self.by_id
            .insert_unique(hasher.hash_one(id), slot, |&slot| hasher.hash_one(&pools[slot as usize].id));
        let restored = self.pools[slot as usize].pool.iter().map(|session| (session.id, slot));
        self.sessions.extend(restored);
        let pool = &mut self.pools[slot as usize].pool;
        let ended = match terms {
            Some(terms) => rule::revise(pool, terms, now),
            None => rule::forget_over(pool, now),
        };
        self.record_ends(slot, &ended, 0, &Origin::SYSTEM, now);
        self.put_in_due_index(slot, now);
    }

    pub(super) fn claim(
        &mut self,
        request: Request<'_>,
        fresh: SessionId,
        now: RegistryTime,
    ) -> Result<Claimed, Error> {
        let slot = self.slot_of(request.pool)?;
        let open = &mut self.pools[slot as usize];
        let decision = rule::admit(&mut open.pool, request.claim, request.policy, fresh, now);
        let answer = self.record_decision(slot, &decision, request, now);
        self.put_in_due_index(slot, now);
        let open = &self.pools[slot as usize];
        Ok(Claimed { answer, live: open.pool.live(), limit: open.limit(), receipt: self.receipt() })
    }

    fn record_decision(
        &mut self,
        slot: u32,
        decision: &Decision,
        request: Request<'_>,
        now: RegistryTime,
    ) -> Answer {
        let admitted = matches!(decision.outcome, Outcome::Admitted(_));
        self.record_ends(slot, &decision.ended, u32::from(admitted), request.origin, now);
        let (how, id) = match decision.outcome {
            Outcome::Admitted(id) => (Granted::Admitted, id),
            Outcome::Refreshed(id) => (Granted::Refreshed, id),
            Outcome::Resumed(id) => (Granted::Resumed, id),
            Outcome::Existing(id) => (Granted::Existing, id),
            Outcome::Denied(why) => {
                let holder = request.claim.holder.clone();
                let open = &mut self.pools[slot as usize];
                open.record_denial(holder, why, request.origin, now, &mut self.journal);
                return Answer::Denied(why);
            }
        };
        let open = &mut self.pools[slot as usize];
        let Some(session) = open.pool.get(id).map(|session| open.live_view(session, now)) else {
            // The rule has just put it there.
            unreachable!("a granted session is in its pool");
        };
        if admitted {
            let change = Change::Admitted {
                session: Box::new(session.session.clone()),
                expires: session.expires,
                particulars: Box::new(request.particulars.clone()),
            };
            open.record(open.pool.live(), change, request.origin, now, &mut self.journal);
            self.sessions.insert(id, slot);
        }
        let made_room = decision.ended.iter().filter(|ending| !ending.reason.is_by_time());
        let ended = made_room.map(|ending| (ending.session.id, ending.reason)).collect();
        Answer::Granted { how, session: Box::new(session), ended }
    }

    pub(super) fn heartbeat(&mut self, id: SessionId, who: &Authority, now: RegistryTime) -> Heartbeat {
        let Some(slot) = self.covered(id, who) else {
            return Heartbeat::Missing;
        };
        let open = &mut self.pools[slot as usize];
        match rule::renew(&mut open.pool, id, now) {
            Renewal::Renewed => match open.pool.get(id) {
                Some(session) => Heartbeat::Renewed(Box::new(open.live_view(session, now))),
                None => Heartbeat::Missing,
            },
            Renewal::Over(ending) => {
                let last_heartbeat = ending.session.last_heartbeat;
                self.record_ends(slot, &[*ending], 0, &Origin::SYSTEM, now);
                self.put_in_due_index(slot, now);
                Heartbeat::Over { last_heartbeat, receipt: self.receipt() }
            }
            Renewal::Missing => Heartbeat::Missing,
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
        let Some(slot) = self.covered(id, who) else {
            return Ended::Missing;
        };
        let pool = &mut self.pools[slot as usize].pool;
        if let (EndReason::Released, Reach::Own(user)) = (reason, &who.reach)
            && rule::leave(pool, id, user, now)
        {
            return Ended::Left;
        }
        let Some(ending) = rule::end(pool, id, reason, now) else {
            return Ended::Missing;
        };
        let reason = ending.reason;
        self.record_ends(slot, &[ending], 0, origin, now);
        self.put_in_due_index(slot, now);
        Ended::Now { reason, receipt: self.receipt() }
    }

    pub(super) fn end_all(
        &mut self,
        id: &PoolId,
        reason: EndReason,
        origin: &Origin,
        now: RegistryTime,
    ) -> Result<EndedAll, Error> {
        let slot = self.slot_of(id)?;
        let ended = rule::end_all(&mut self.pools[slot as usize].pool, reason, now);
        Ok(self.all_ended(slot, &ended, origin, now))
    }

    pub(super) fn revise(
        &mut self,
        id: &PoolId,
        terms: Terms,
        origin: &Origin,
        now: RegistryTime,
    ) -> Result<EndedAll, Error> {
        let slot = self.slot_of(id)?;
        let ended = rule::revise(&mut self.pools[slot as usize].pool, terms, now);
        Ok(self.all_ended(slot, &ended, origin, now))
    }

    fn all_ended(&mut self, slot: u32, ended: &[Ending], origin: &Origin, now: RegistryTime) -> EndedAll {
        self.record_ends(slot, ended, 0, origin, now);
        self.put_in_due_index(slot, now);
        EndedAll { count: ended.len(), receipt: self.receipt() }
    }

    pub(super) fn session(&mut self, id: SessionId, who: &Authority, now: RegistryTime) -> Option<Live> {
        let slot = self.covered(id, who)?;
        self.forget_over(slot, now);
        self.put_in_due_index(slot, now);
        let open = &self.pools[slot as usize];
        Some(open.live_view(open.pool.get(id)?, now))
    }

    pub(super) fn view(&mut self, id: &PoolId, max: usize, now: RegistryTime) -> Result<PoolView, Error> {
        let slot = self.slot_of(id)?;
        self.forget_over(slot, now);
        self.put_in_due_index(slot, now);
        let open = &self.pools[slot as usize];
        let sessions =
            open.pool.stalest_first().take(max).map(|session| open.live_view(session, now)).collect();
        Ok(PoolView { live: open.pool.live(), terms: open.pool.terms(), sessions })
    }

    pub(super) fn sweep(&mut self, pools_max: usize, now: RegistryTime) -> Swept {
        let mut ended = 0;
        for _ in 0..pools_max {
            let Some(&(at, slot)) = self.due.first().filter(|(at, _)| *at <= now) else {
                return Swept { ended, more: false };
            };
            self.due.remove(&(at, slot));
            self.pools[slot as usize].due = None;
            ended += self.forget_over(slot, now);
            self.pools[slot as usize].flush_denials(now, &mut self.journal);
            if self.pools[slot as usize].may_close(&self.journal, now) {
                self.close(slot);
            } else {
                self.put_in_due_index(slot, now);
            }
        }
        Swept { ended, more: self.due().is_some_and(|at| at <= now) }
    }

    pub(super) fn renewed_since(&self, since: RegistryTime) -> Vec<(SessionId, RegistryTime)> {
        self.pools
            .iter()
            .flat_map(|(_, open)| open.pool.renewed_since(since))
            .map(|session| (session.id, session.last_heartbeat))
            .collect()
    }

    fn forget_over(&mut self, slot: u32, now: RegistryTime) -> usize {
        let ended = rule::forget_over(&mut self.pools[slot as usize].pool, now);
        self.record_ends(slot, &ended, 0, &Origin::SYSTEM, now);
        ended.len()
    }

    fn record_ends(
        &mut self,
        slot: u32,
        ended: &[Ending],
        newcomers: u32,
        origin: &Origin,
        now: RegistryTime,
    ) {
        for ending in ended {
            self.sessions.remove(&ending.session.id);
        }
        self.pools[slot as usize].record_ends(ended, newcomers, origin, now, &mut self.journal);
    }

    /// Makes sure that the sweeper comes by in time; an entry that is early enough stays as it is.
    fn put_in_due_index(&mut self, slot: u32, now: RegistryTime) {
        let open = &mut self.pools[slot as usize];
        open.note_whether_empty(now);
        let next = open.next_due(now).unwrap_or_else(|| open.may_close_at(now));
        if open.due.is_some_and(|due| due <= next) {
            return;
        }
        if let Some(later) = open.due.replace(next) {
            self.due.remove(&(later, slot));
        }
        self.due.insert((next, slot));
    }

    fn close(&mut self, slot: u32) {
        let open = self.pools.remove(slot as usize);
        if let Ok(entry) = self.by_id.find_entry(self.hasher.hash_one(&open.id), |&other| other == slot) {
            entry.remove();
        }
    }

    fn slot_of(&self, id: &PoolId) -> Result<u32, Error> {
        let is_it = |&slot: &u32| self.pools[slot as usize].id == *id;
        self.by_id.find(self.hasher.hash_one(id), is_it).copied().ok_or(Error::PoolNotOpen)
    }

    /// The pool of a session that `who` may touch.
    fn covered(&self, id: SessionId, who: &Authority) -> Option<u32> {
        let slot = *self.sessions.get(&id)?;
        let open = &self.pools[slot as usize];
        who.covers(&open.id, open.pool.get(id)?).then_some(slot)
    }
}
