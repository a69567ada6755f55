//! The naive registry: one lock around everything.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use seatkeeper_core::{
    Authority, Bucket, EndReason, LatestHeartbeat, Origin, PoolId, Reach, Region, RegistryTime, Session,
    SessionId, Span, Terms,
};
use seatkeeper_registry::{
    Admission, Claimed, Ended, EndedAll, Error, Expiry, Heartbeat, Journal, JournalRead, Live, Liveness,
    ManualClock, PoolView, Pools, Receipt, Request, Sessions, Swept, TimeSource as _,
};
use tokio::sync::Notify;

use crate::design::Flaw;
use crate::journal::Journals;
use crate::pool::{Pool, Step};

/// The state shared by the nodes.
pub(crate) struct Store {
    flaw: Flaw,
    journal_events_max: usize,
    clock: Arc<ManualClock>,
    state: Mutex<State>,
    wakeup: Notify,
}

#[derive(Default)]
struct State {
    latest: RegistryTime,
    pools: HashMap<PoolId, Pool>,
    journals: Journals,
}

/// A node with a clock that is `ahead`.
pub(crate) struct Node {
    pub(crate) store: Arc<Store>,
    pub(crate) ahead: Span,
}

impl Store {
    pub(crate) fn new(flaw: Flaw, journal_events_max: usize, clock: Arc<ManualClock>) -> Self {
        Self { flaw, journal_events_max, clock, state: Mutex::default(), wakeup: Notify::new() }
    }
}

impl Node {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.store.state.lock().expect("no step panics")
    }

    /// Returns the time of a step: one clock that never goes back, or for `Flaw::ClockOfTheCaller` the node's
    /// own clock.
    fn time(&self, state: &mut State) -> RegistryTime {
        let reading = self.store.clock.now() + self.ahead;
        if self.store.flaw == Flaw::ClockOfTheCaller {
            return reading;
        }
        state.latest = state.latest.max(reading);
        state.latest
    }

    /// Runs a step on a pool. Returns `Err(PoolNotOpen)` if the pool is not open.
    fn step<T>(
        &self,
        pool: &PoolId,
        origin: &Origin,
        act: impl FnOnce(&mut Pool, &mut Step<'_>) -> T,
    ) -> Result<(T, Receipt), Error> {
        let mut state = self.lock();
        let now = self.time(&mut state);
        let State { pools, journals, .. } = &mut *state;
        let open = pools.get_mut(pool).ok_or(Error::PoolNotOpen)?;
        let done = act(open, &mut Step { now, origin, journals });
        self.store.wakeup.notify_one();
        Ok((done, journals.end(pool.bucket())))
    }

    /// Runs a step on the pool of a session that the caller may touch.
    fn step_on_session<T>(
        &self,
        id: SessionId,
        who: &Authority,
        origin: &Origin,
        act: impl FnOnce(&mut Pool, &mut Step<'_>) -> T,
    ) -> Option<(T, Receipt)> {
        let covers = |pool: &Pool| pool.get(id).is_some_and(|session| who.covers(&pool.id, session));
        let pool = self.lock().pools.values().find(|pool| covers(pool)).map(|pool| pool.id.clone())?;
        self.step(&pool, origin, |pool, step| covers(pool).then(|| act(pool, step)))
            .ok()
            .and_then(|(done, receipt)| Some((done?, receipt)))
    }
}

#[async_trait]
impl Admission for Node {
    async fn open(
        &self,
        id: &PoolId,
        seq: u64,
        terms: Option<Terms>,
        live: Vec<Session>,
    ) -> Result<(), Error> {
        let mut state = self.lock();
        let now = self.time(&mut state);
        let State { pools, journals, .. } = &mut *state;
        if pools.contains_key(id) {
            return Ok(());
        }
        let ttl = terms.map(|terms| terms.ttl);
        let restored = |session: Session| match id.kind.has_heartbeats() {
            true => Session { last_heartbeat: now, ttl: ttl.unwrap_or_default().max(session.ttl), ..session },
            false => session,
        };
        let sessions: Vec<_> = live.into_iter().map(restored).collect();
        let until = sessions.iter().map(Session::silent_until).max().unwrap_or_default();
        let mut pool = Pool {
            id: id.clone(),
            flaw: self.store.flaw,
            terms,
            counter: (sessions.len() as u32, until),
            set_until: until,
            sessions,
            seq,
            denials: None,
        };
        let mut step = Step { now, origin: &Origin::SYSTEM, journals };
        match terms {
            Some(terms) => pool.revise(terms, &mut step),
            None => pool.forget_over(&mut step),
        };
        pools.insert(id.clone(), pool);
        Ok(())
    }

    async fn claim(&self, request: Request<'_>) -> Result<Claimed, Error> {
        let depth = self.lock().journals.depth();
        if depth >= self.store.journal_events_max {
            return Err(Error::JournalFull { depth });
        }
        let Request { pool, claim, policy, origin, particulars } = request;
        let ((answer, live, limit), receipt) = self.step(pool, origin, |open, step| {
            let fresh = SessionId::mint(step.now, pool.bucket(), Region::default(), rand::random());
            let answer = open.claim(claim, policy, particulars, fresh, step);
            (answer, open.sessions.len() as u32, open.limit())
        })?;
        Ok(Claimed { answer, live, limit, receipt })
    }
}

#[async_trait]
impl Sessions for Node {
    async fn heartbeat(&self, id: SessionId, who: &Authority, origin: &Origin) -> Result<Heartbeat, Error> {
        let heard = self.step_on_session(id, who, origin, |pool, step| {
            let session = pool.get(id).expect("it is covered").clone();
            if pool.end_if_over(id, step) {
                return Err(session.last_heartbeat);
            }
            pool.heartbeat(id, step.now);
            Ok(Liveness::from(pool.live_view(pool.get(id).expect("it lives on"), step.now)))
        });
        Ok(match heard {
            None => Heartbeat::Missing,
            Some((Ok(liveness), _)) => Heartbeat::Renewed(liveness),
            Some((Err(last_heartbeat), receipt)) => Heartbeat::Over { last_heartbeat, receipt },
        })
    }

    async fn end(
        &self,
        id: SessionId,
        who: &Authority,
        reason: EndReason,
        origin: &Origin,
    ) -> Result<Ended, Error> {
        let ended = self.step_on_session(id, who, origin, |pool, step| {
            if let (EndReason::Released, Reach::Own(user)) = (reason, &who.reach)
                && pool.leave(id, user, step.now)
            {
                return None;
            }
            pool.end(id, reason, step)
        });
        Ok(match ended {
            None => Ended::Missing,
            Some((None, _)) => Ended::Left,
            Some((Some(reason), receipt)) => Ended::Now { reason, receipt },
        })
    }

    async fn session(&self, id: SessionId, who: &Authority) -> Result<Option<Live>, Error> {
        let shown = self.step_on_session(id, who, &Origin::SYSTEM, |pool, step| {
            pool.forget_over(step);
            pool.get(id).map(|session| pool.live_view(session, step.now))
        });
        Ok(shown.and_then(|(live, _)| live))
    }

    async fn renewed_since(
        &self,
        bucket: Bucket,
        since: RegistryTime,
    ) -> Result<Vec<LatestHeartbeat>, Error> {
        let state = self.lock();
        let pools = state.pools.values().filter(|pool| pool.id.bucket() == bucket);
        let renewed = pools.flat_map(|pool| &pool.sessions).filter(|session| session.last_heartbeat > since);
        Ok(renewed.map(Session::latest_heartbeat).collect())
    }
}

#[async_trait]
impl Pools for Node {
    async fn end_all(&self, pool: &PoolId, reason: EndReason, origin: &Origin) -> Result<EndedAll, Error> {
        let (count, receipt) =
            self.step(pool, origin, |pool, step| pool.end_where(|_, _| true, reason, step))?;
        Ok(EndedAll { count, receipt })
    }

    async fn revise(&self, pool: &PoolId, terms: Terms, origin: &Origin) -> Result<EndedAll, Error> {
        let (count, receipt) = self.step(pool, origin, |pool, step| pool.revise(terms, step))?;
        Ok(EndedAll { count, receipt })
    }

    async fn view(&self, pool: &PoolId, max: usize) -> Result<PoolView, Error> {
        let (view, _) = self.step(pool, &Origin::SYSTEM, |pool, step| {
            pool.forget_over(step);
            let shown = pool.stalest_first().into_iter().take(max);
            let sessions = shown.map(|session| pool.live_view(session, step.now)).collect();
            PoolView { live: pool.sessions.len() as u32, terms: pool.terms, sessions }
        })?;
        Ok(view)
    }
}

#[async_trait]
impl Expiry for Node {
    async fn now(&self) -> Result<RegistryTime, Error> {
        Ok(self.time(&mut self.lock()))
    }

    async fn sweep(&self, bucket: Bucket, max: usize) -> Result<Swept, Error> {
        let mut state = self.lock();
        let now = self.time(&mut state);
        let State { pools, journals, .. } = &mut *state;
        let mut due: Vec<_> = pools
            .values_mut()
            .filter(|pool| pool.id.bucket() == bucket && pool.due().is_some_and(|due| due <= now))
            .collect();
        let mut swept = Swept { ended: 0, more: due.len() > max };
        for pool in due.iter_mut().take(max) {
            let mut step = Step { now, origin: &Origin::SYSTEM, journals };
            swept.ended += pool.forget_over(&mut step);
            pool.flush_denials(&mut step);
        }
        self.store.wakeup.notify_one();
        Ok(swept)
    }

    async fn due(&self, bucket: Bucket) -> Result<Option<RegistryTime>, Error> {
        let state = self.lock();
        Ok(state.pools.values().filter(|pool| pool.id.bucket() == bucket).filter_map(Pool::due).min())
    }
}

#[async_trait]
impl Journal for Node {
    async fn journal_read(&self, max: usize) -> Result<JournalRead, Error> {
        Ok(JournalRead { entries: self.lock().journals.read(max), acknowledged: Vec::new() })
    }

    async fn journal_acknowledge(&self, through: Receipt) -> Result<(), Error> {
        self.lock().journals.acknowledge(through);
        Ok(())
    }

    fn journal_depth(&self) -> usize {
        self.lock().journals.depth()
    }

    async fn journal_woken(&self) {
        self.store.wakeup.notified().await;
    }

    async fn journal_end(&self, bucket: Bucket) -> Result<Receipt, Error> {
        Ok(self.lock().journals.end(bucket))
    }
}
