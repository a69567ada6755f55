//! Stories: the events of a pool, as a registry would produce them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

use seatkeeper_core::{
    Actor, BucketSet, Change, Denial, Denied, Device, EndReason, Event, Holder, Origin, Particulars, PoolId,
    PoolKind, Region, RegistryTime, Seats, Session, SessionId, Span, TenantId, Tier, UserId, Users, WhenFull,
};
use seatkeeper_ledger::licenses::{Clients, CountPer, License, LicenseKey, NewLicense, Reacquire, Status};
use seatkeeper_ledger::nodes::NodeRow;
use seatkeeper_ledger::plans::{GroupRules, NewPlan, Plan, PlanName};
use seatkeeper_ledger::subscriptions::{NewSubscription, Subscription};
use seatkeeper_ledger::{Ledger, Settings, Write};
use uuid::Uuid;

use crate::place::TestLedger;

pub(crate) const START: RegistryTime = RegistryTime::from_millis(1_800_000_000_123);
/// The epoch of every event.
pub(crate) const EPOCH: u64 = 1 << 16;
pub(crate) const TTL: Span = Span::from_secs(360);

/// Opens a new ledger with all buckets in their first epoch.
pub(crate) async fn ledger() -> (TestLedger, Ledger) {
    let place = TestLedger::new();
    let ledger = Ledger::open(Settings::new(place.location())).await.unwrap();
    assert_eq!(ledger.raise_epoch("memory:1", 0).await.unwrap(), EPOCH);
    (place, ledger)
}

/// Returns a live node, which may raise epochs.
pub(crate) async fn raiser(ledger: &Ledger) -> Uuid {
    let (id, name, unreachable) = (Uuid::from_u128(99), "raiser".to_owned(), BucketSet::default());
    ledger.node_reads(&NodeRow { id, name, unreachable, named: BTreeSet::new() }).await.unwrap();
    id
}

pub(crate) fn tenant() -> TenantId {
    TenantId::from("acme")
}

pub(crate) fn admin() -> Origin {
    Origin { actor: Actor::Admin(UserId::from("joe")), request: Some("req-1".into()) }
}

/// Returns a write at `START` without an idempotency key.
pub(crate) fn by(origin: &Origin) -> Write<'_> {
    Write { origin, at: START, idempotency: None, home: None, expected_version: None }
}

pub(crate) fn new_license(key: &str, seats: u32) -> NewLicense {
    NewLicense {
        tenant: tenant(),
        key: LicenseKey::from(key),
        max_seats: Seats(seats),
        status: Status::Active,
        expires_at: None,
        count_per: CountPer::Machine,
        clients: Clients::default(),
        ttl_seconds: None,
        grace_seconds: 0,
        reacquire: Reacquire::default(),
        contact: None,
    }
}

pub(crate) async fn licensed(ledger: &Ledger, seats: u32) -> License {
    let origin = admin();
    let key = format!("KEY-{}", uuid::Uuid::new_v4());
    ledger.create_license(new_license(&key, seats), by(&origin)).await.unwrap().value
}

pub(crate) fn named(plan: &str) -> PlanName {
    plan.parse().unwrap()
}

pub(crate) fn new_plan(name: &str, devices: u32) -> NewPlan {
    NewPlan {
        tenant: tenant(),
        name: named(name),
        device_limit: Seats(devices),
        price_cents: 999,
        when_full: WhenFull::Evict,
        ttl_seconds: None,
        groups: GroupRules::default(),
    }
}

pub(crate) async fn planned(ledger: &Ledger, name: &str, devices: u32) -> Plan {
    ledger.create_plan(new_plan(name, devices), by(&admin())).await.unwrap().value
}

/// Returns a subscription from now on, without an end.
pub(crate) fn new_subscription(user: &str, plan: &str) -> NewSubscription {
    NewSubscription {
        tenant: tenant(),
        user: UserId::from(user),
        plan: named(plan),
        starts_at: None,
        ends_at: None,
    }
}

pub(crate) async fn subscribed(ledger: &Ledger, user: &str, plan: &str) -> Subscription {
    ledger.create_subscription(new_subscription(user, plan), by(&admin())).await.unwrap().value
}

/// A pool and the events so far.
pub(crate) struct Story {
    pub(crate) pool: PoolId,
    pub(crate) now: RegistryTime,
    pub(crate) limit: u32,
    pub(crate) version: u64,
    seq: u64,
    ids: u64,
    live: BTreeMap<SessionId, Holder>,
}

impl Story {
    pub(crate) fn new(license: &License) -> Self {
        Self { limit: license.max_seats.0, version: license.version, ..Self::of_pool(license.pool()) }
    }

    /// Returns a device pool with a limit of 1,000,000 that is not on record.
    pub(crate) fn devices(name: &str) -> Self {
        Self::of_pool(PoolId::new(PoolKind::Subscriber, tenant(), name))
    }

    /// Returns the pool of a user's devices, under the user's terms at `START`.
    pub(crate) async fn of_subscriber(ledger: &Ledger, user: &str) -> Self {
        let subscriber = ledger.subscriber(&tenant(), &UserId::from(user)).await.unwrap();
        let terms = subscriber.entitled(START, TTL).terms;
        Self { limit: terms.limit.0, version: terms.version, ..Self::devices(user) }
    }

    fn of_pool(pool: PoolId) -> Self {
        // Separate number ranges keep the ids of stories distinct.
        static STORIES: AtomicU64 = AtomicU64::new(0);
        let ids = STORIES.fetch_add(1, Ordering::Relaxed) << 40;
        Self { pool, now: START, limit: 1_000_000, version: 1, seq: 0, ids, live: BTreeMap::new() }
    }

    pub(crate) fn admit(&mut self, holder: &str) -> (SessionId, Event) {
        self.ids += 1;
        let id = SessionId::mint(self.now, self.pool.bucket(), Region::default(), self.ids);
        let session = Session {
            id,
            holder: Holder::from(holder),
            users: Users::one(UserId::from("ann")),
            started: self.now,
            last_heartbeat: self.now,
            ttl: TTL,
            tier: Tier(0),
        };
        self.live.insert(id, session.holder.clone());
        let particulars = Particulars {
            ip: Some([192, 0, 2, 7].into()),
            user_agent: Some("cad/7".into()),
            metadata: Some(r#"{"os":"linux"}"#.into()),
            device: Some(Device { kind: "tv".into(), name: Some("Küche".into()) }),
        };
        let change = Change::Admitted {
            session: Box::new(session),
            expires: self.now + TTL,
            particulars: Box::new(particulars),
        };
        (id, self.event(change))
    }

    pub(crate) fn end(&mut self, id: SessionId, reason: EndReason) -> Event {
        let holder = self.live.remove(&id).expect("the session is live");
        let last_heartbeat = self.now - Span::from_secs(1);
        let expires = if reason == EndReason::Expired { self.now } else { last_heartbeat + TTL };
        self.event(Change::Ended { session: id, holder, tier: Tier(0), reason, last_heartbeat, expires })
    }

    pub(crate) fn deny(&mut self, holder: &str) -> Event {
        let why = Denial::Full { free_in: None };
        self.event(Change::Denied(Denied { holder: holder.into(), why, count: 1, folded: false }))
    }

    pub(crate) fn pass(&mut self, span: Span) {
        self.now = self.now + span;
    }

    fn event(&mut self, change: Change) -> Event {
        self.seq += 1;
        Event {
            pool: self.pool.clone(),
            seq: self.seq,
            epoch: EPOCH,
            at: self.now,
            live: self.live.len() as u32,
            limit: Seats(self.limit),
            version: self.version,
            origin: Origin { actor: Actor::User(UserId::from("ann")), request: Some("req-2".into()) },
            change,
        }
    }
}
