//! A test harness with capacity sessions and the workers that meter them.

use std::collections::HashMap;

use seatkeeper_core::{
    Actor, Change, EndReason, Event, Holder, Metered, Origin, Particulars, PoolId, PoolKind, Region,
    RegistryTime, Seats, Session, SessionId, Span, TenantId, Tier, UserId, Users,
};
use seatkeeper_ledger::jobs::{Fence, JobName, LOCK_TIMEOUT};
use seatkeeper_ledger::usage::{DueBatch, Emitted, Settlement};
use seatkeeper_ledger::{Error, Ledger};
use uuid::Uuid;

use crate::place::TestLedger;
use crate::story::{EPOCH, START, ledger};

/// The maximum time a capacity is held.
pub(super) const TERM: Span = Span::from_secs(30 * 24 * 3_600);
pub(super) const MINUTE: Span = Span::from_secs(60);

/// A ledger with capacity sessions and a clock.
pub(super) struct Meter {
    pub(super) place: TestLedger,
    pub(super) ledger: Ledger,
    pub(super) now: RegistryTime,
    pub(super) batch_records: usize,
    /// All sessions, live and ended.
    pub(super) lives: HashMap<SessionId, (PoolId, Metered)>,
    seqs: HashMap<PoolId, u64>,
    ids: u64,
}

pub(super) fn tenant(number: u128) -> TenantId {
    TenantId::new(Uuid::from_u128(0x7e << 64 | number).to_string())
}

impl Meter {
    pub(super) async fn open() -> Self {
        let (place, ledger) = ledger().await;
        let (lives, seqs) = (HashMap::new(), HashMap::new());
        Self { place, ledger, now: START, batch_records: 1_000, lives, seqs, ids: 0 }
    }

    pub(super) fn pass(&mut self, span: Span) {
        self.now = self.now + span;
    }

    /// Starts a session of a user of tenant 1 on the only capacity.
    pub(super) async fn hold(&mut self, user: u128, tier: u8) -> SessionId {
        self.hold_of(&tenant(1), user, tier).await
    }

    pub(super) async fn hold_of(&mut self, tenant: &TenantId, user: u128, tier: u8) -> SessionId {
        let (id, event) = self.held(tenant, user, tier);
        self.ledger.apply(&[event]).await.unwrap();
        id
    }

    /// Starts sessions of many users of a tenant at one instant.
    pub(super) async fn crowd(&mut self, tenant: &TenantId, users: u128) {
        let events: Vec<_> = (0..users).map(|user| self.held(tenant, user, 1).1).collect();
        self.ledger.apply(&events).await.unwrap();
    }

    fn held(&mut self, tenant: &TenantId, user: u128, tier: u8) -> (SessionId, Event) {
        let (user, capacity) = (Uuid::from_u128(user), Uuid::from_u128(0xca));
        let pool = PoolId::new(PoolKind::Capacity, tenant.clone(), format!("{user}/{capacity}"));
        self.ids += 1;
        let id = SessionId::mint(self.now, pool.bucket(), Region::default(), self.ids);
        let session = Session {
            id,
            holder: Holder::new(user.to_string()),
            users: Users::one(UserId::new(user.to_string())),
            started: self.now,
            last_heartbeat: self.now,
            ttl: TERM,
            tier: Tier(tier),
        };
        let life = Metered { started: self.now, over: self.now + TERM, tier: Tier(tier) };
        self.lives.insert(id, (pool.clone(), life));
        let particulars = Box::new(Particulars::default());
        let change = Change::Admitted { session: Box::new(session), expires: life.over, particulars };
        (id, self.event(pool, 1, change))
    }

    /// Records the end of a session. An expired session keeps its earlier end of life.
    pub(super) async fn end(&mut self, id: SessionId, reason: EndReason) {
        let now = self.now;
        let (pool, life) = self.lives.get_mut(&id).expect("a session");
        let (pool, expires) = (pool.clone(), life.started + TERM);
        life.over = life.over.min(now);
        let (holder, tier) = (Holder::new(pool.name.split('/').next().unwrap()), life.tier);
        let last_heartbeat = life.started;
        let change = Change::Ended { session: id, holder, tier, reason, last_heartbeat, expires };
        let event = self.event(pool, 0, change);
        self.ledger.apply(&[event]).await.unwrap();
    }

    fn event(&mut self, pool: PoolId, live: u32, change: Change) -> Event {
        let seq = self.seqs.entry(pool.clone()).or_default();
        *seq += 1;
        let origin = Origin { actor: Actor::System, request: None };
        let (seq, epoch, at) = (*seq, EPOCH, self.now);
        Event { pool, seq, epoch, at, live, limit: Seats(1), version: 1, origin, change }
    }

    /// Takes a job. A run without an end is first presumed dead.
    pub(super) async fn take(&mut self, job: JobName) -> Fence {
        self.ledger.ensure_job(job, Span::from_millis(1), START).await.unwrap();
        self.ledger.run_job_now(job, self.now).await.unwrap();
        if let Some(run) = self.ledger.take_job(job, "worker", self.now).await.unwrap() {
            return run.fence;
        }
        self.pass(LOCK_TIMEOUT);
        let run = self.ledger.take_job(job, "worker", self.now).await.unwrap();
        run.expect("a job whose lock is stale").fence
    }

    /// Emits the usage up to the present.
    pub(super) async fn emit(&mut self) -> Option<Emitted> {
        let (until, fence) = (self.now, self.take(JobName::UsageEmission).await);
        let emitted = self.emit_by(until, &fence).await.unwrap();
        self.ledger.complete_job(&fence, self.now).await.unwrap();
        emitted
    }

    /// Emits window after window, and returns the last window.
    pub(super) async fn emit_by(&self, until: RegistryTime, fence: &Fence) -> Result<Option<Emitted>, Error> {
        let mut last = None;
        while let Some(emitted) = self.ledger.emit_usage(until, self.batch_records, fence).await? {
            last = Some(emitted);
        }
        Ok(last)
    }

    /// Delivers all due batches.
    pub(super) async fn deliver(&mut self) -> Vec<DueBatch> {
        let fence = self.take(JobName::UsageDelivery).await;
        let mut told = Vec::new();
        loop {
            let due = self.ledger.due_usage(self.now, None, 1_000).await.unwrap();
            if due.is_empty() {
                break;
            }
            for batch in &due {
                let delivered = Settlement::Delivered { status: 200, at: self.now };
                self.ledger.settle_usage(batch.id, delivered, &fence).await.unwrap();
            }
            told.extend(due);
        }
        self.ledger.complete_job(&fence, self.now).await.unwrap();
        told
    }
}
