//! The journal as an account: each event follows from the event before, and the sum of the events is the
//! state.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use seatkeeper_core::{Bucket, Change, Event, PoolId, RegistryTime, SessionId};

use super::harness::Harness;
use crate::{Error, JournalEntry, Registry};

/// Maximum number of pools per call of a sweep in the suite.
const SWEPT_POOLS_MAX: usize = 100;

/// Maximum number of calls to sweep a bucket of the suite.
const SWEEPS_MAX: usize = 1_000;

/// Maximum number of reads to reach the end of an idle journal.
const READS_MAX: usize = 100;

/// The account of a pool: the sum of its events.
#[derive(Clone, Debug, Default)]
pub struct Account {
    seq: u64,
    at: RegistryTime,
    epoch: u64,
    live: BTreeMap<SessionId, RegistryTime>,
    gone: BTreeSet<SessionId>,
}

impl Account {
    /// Creates the account of a pool with the number `seq` of its last event on record and the sessions
    /// `live`.
    pub fn carried_forward(seq: u64, live: impl IntoIterator<Item = SessionId>) -> Self {
        let live = live.into_iter().map(|id| (id, RegistryTime::default())).collect();
        Self { seq, live, ..Self::default() }
    }

    /// Returns the number of the last event.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Enters the next event. An error describes the mistake in the event.
    pub fn enter(&mut self, event: &Event) -> Result<(), String> {
        self.check_order(event)?;
        self.apply(event)?;
        if event.live as usize != self.live.len() {
            return Err(format!("{} are live, the event says {}", self.live.len(), event.live));
        }
        Ok(())
    }

    fn check_order(&mut self, event: &Event) -> Result<(), String> {
        if event.seq != self.seq + 1 {
            return Err(format!("event {} follows {}", event.seq, self.seq));
        }
        if event.at < self.at || event.epoch < self.epoch {
            return Err(format!("event {} goes back in time or epoch", event.seq));
        }
        (self.seq, self.at, self.epoch) = (event.seq, event.at, event.epoch);
        Ok(())
    }

    fn apply(&mut self, event: &Event) -> Result<(), String> {
        match &event.change {
            Change::Admitted { session, expires, .. } => {
                if self.gone.contains(&session.id) || self.live.insert(session.id, *expires).is_some() {
                    return Err(format!("{} began twice", session.id));
                }
                if self.live.len() > event.limit.0 as usize {
                    return Err(format!("{} was admitted above the limit of {}", session.id, event.limit.0));
                }
            }
            Change::Ended { session, .. } => {
                if self.live.remove(session).is_none() || !self.gone.insert(*session) {
                    return Err(format!("{session} ended without being live"));
                }
            }
            Change::Denied(denied) => {
                if denied.count == 0 || (!denied.folded && denied.count != 1) {
                    return Err(format!("a record of {} denials", denied.count));
                }
            }
        }
        Ok(())
    }

    /// Returns the ids of the live sessions.
    pub fn live(&self) -> impl Iterator<Item = SessionId> {
        self.live.keys().copied()
    }
}

/// Reads all waiting events of the journal. A read may return only the first events of a bucket, and the next
/// read the later events of other nodes.
pub async fn waiting(registry: &dyn Registry) -> Vec<JournalEntry> {
    for _ in 0..READS_MAX {
        let read = registry.journal_read(usize::MAX).await.expect("a journal can be read");
        if reaches_the_end(registry, &read.entries).await {
            return read.entries;
        }
    }
    panic!("no read of the journal comes to its end")
}

async fn reaches_the_end(registry: &dyn Registry, entries: &[JournalEntry]) -> bool {
    let last: BTreeMap<_, _> = entries.iter().map(|entry| (entry.receipt.bucket, entry.receipt)).collect();
    for (bucket, receipt) in last {
        match registry.journal_end(bucket).await {
            Ok(end) if end == receipt => {}
            Ok(_) => return false,
            Err(Error::NotServing { .. }) => {}
            Err(error) => panic!("{bucket:?} does not tell the end of its journal: {error}"),
        }
    }
    true
}

/// Returns the waiting events of one pool.
pub(super) async fn events_of(registry: &dyn Registry, pool: &PoolId) -> Vec<Event> {
    let entries = waiting(registry).await.into_iter();
    entries.map(|entry| entry.event).filter(|event| event.pool == *pool).collect()
}

/// Sweeps every bucket until nothing is due. Returns the number of ended sessions.
pub async fn sweep_all(registry: &dyn Registry) -> usize {
    let mut ended = 0;
    for bucket in Bucket::all() {
        ended += sweep_out(registry, bucket, SWEPT_POOLS_MAX).await;
    }
    ended
}

/// Sweeps a bucket, at most `pools_max` pools per call, until nothing is due. Returns the number of ended
/// sessions.
pub(super) async fn sweep_out(registry: &dyn Registry, bucket: Bucket, pools_max: usize) -> usize {
    let mut ended = 0;
    for _ in 0..SWEEPS_MAX {
        let swept = registry.sweep(bucket, pools_max).await.expect("a bucket can be swept");
        ended += swept.ended;
        if !swept.more {
            return ended;
        }
    }
    panic!("sweeping {bucket:?} does not come to an end")
}

/// Balances the books after a clause: for each pool with its whole history in the journal, the events follow
/// from each other, and their sum is the state shown by the registry.
pub async fn balance(harness: &impl Harness) {
    let registry = harness.registry();
    sweep_all(&*registry).await;
    let mut accounts: HashMap<PoolId, Account> = HashMap::new();
    let mut incomplete = BTreeSet::new();
    for JournalEntry { event, .. } in waiting(&*registry).await {
        if !accounts.contains_key(&event.pool) && event.seq != 1 {
            incomplete.insert(event.pool.clone());
        }
        if incomplete.contains(&event.pool) {
            continue;
        }
        let account = accounts.entry(event.pool.clone()).or_default();
        if let Err(wrong) = account.enter(&event) {
            panic!("the journal of {:?} does not add up: {wrong}; {event:?}", event.pool);
        }
    }
    for (pool, account) in accounts {
        shows_what_is_on_record(&*registry, &pool, &account).await;
    }
}

async fn shows_what_is_on_record(registry: &dyn Registry, pool: &PoolId, account: &Account) {
    let on_record: BTreeSet<_> = account.live().collect();
    let shown = match registry.view(pool, usize::MAX).await {
        Ok(view) => view.sessions.iter().map(|live| live.session.id).collect::<BTreeSet<_>>(),
        Err(Error::PoolNotOpen) => BTreeSet::new(),
        Err(error) => panic!("{pool:?} is not shown: {error}"),
    };
    let now = registry.now().await.expect("a registry knows the time");
    assert!(shown.is_subset(&on_record), "{pool:?} shows {shown:?}, on record are {on_record:?}");
    // A real clock may have passed an expiry since the sweep. Renewals are not on record, so a session may be
    // missing only if its first TTL is over.
    for id in on_record.difference(&shown) {
        assert!(account.live[id] <= now, "{id} of {pool:?} is on record as live and not shown");
    }
}
