//! Tests of cached subscribers: expiry, invalidation and listeners.

use futures_util::FutureExt as _;
use seatkeeper_core::{Actor, Origin, RegistryTime, Seats, Span};
use seatkeeper_ledger::plans::PlanChange;
use seatkeeper_ledger::subscriptions::NewSubscription;
use seatkeeper_ledger::{Settings, Write};

use super::*;

const NOW: RegistryTime = RegistryTime::from_millis(1_800_000_000_000);

struct Scene {
    ledger: Ledger,
    subscribers: Subscribers,
    _dir: tempfile::TempDir,
}

impl Scene {
    async fn new(remember_for: Duration) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(Settings::new(dir.path())).await.unwrap();
        let subscribers = Subscribers::new(ledger.clone(), remember_for, None);
        Self { ledger, subscribers, _dir: dir }
    }

    async fn limit(&self, user: &str) -> u32 {
        let subscriber = self.subscribers.get(&acme(), &user.into()).await.unwrap();
        subscriber.entitled(NOW, Span::from_secs(90)).terms.limit.0
    }

    /// Subscribes the user in the ledger alone.
    async fn subscribe(&self, user: &str, plan: &str) {
        let (tenant, user, plan) = (acme(), user.into(), plan.parse().unwrap());
        let new = NewSubscription { tenant, user, plan, starts_at: None, ends_at: None };
        self.ledger.create_subscription(new, write(&origin())).await.unwrap();
    }

    /// Changes the plan in the ledger alone.
    async fn set(&self, plan: &str, devices: u32) {
        let change = PlanChange { device_limit: Some(Seats(devices)), ..PlanChange::default() };
        let plan = plan.parse().unwrap();
        self.ledger.update_plan(&acme(), &plan, change, write(&origin())).await.unwrap();
    }
}

fn acme() -> TenantId {
    TenantId::from("acme")
}

fn origin() -> Origin {
    Origin { actor: Actor::System, request: None }
}

fn write(origin: &Origin) -> Write<'_> {
    Write { origin, at: NOW, idempotency: None, home: None, expected_version: None }
}

#[tokio::test]
async fn what_is_remembered_counts_until_it_is_said_to_have_changed() {
    let scene = Scene::new(Duration::from_secs(3_600)).await;
    assert_eq!((scene.limit("ann").await, scene.limit("bob").await), (1, 1));
    scene.subscribe("ann", "premium").await;
    assert_eq!(scene.limit("ann").await, 1);
    scene.subscribers.forget(Changed::Subscriber(acme(), "bob".into()));
    assert_eq!(scene.limit("ann").await, 1);
    scene.subscribers.forget(Changed::Subscriber(acme(), "ann".into()));
    assert_eq!(scene.limit("ann").await, 4);

    scene.set("premium", 6).await;
    scene.subscribers.forget(Changed::Tenant("globex".into()));
    assert_eq!(scene.limit("ann").await, 4);
    scene.subscribers.forget(Changed::Tenant(acme()));
    assert_eq!(scene.limit("ann").await, 6);
}

#[tokio::test]
async fn nothing_is_remembered_for_longer_than_it_may_be() {
    let scene = Scene::new(Duration::ZERO).await;
    assert_eq!(scene.limit("ann").await, 1);
    scene.subscribe("ann", "premium").await;
    assert_eq!(scene.limit("ann").await, 4);
}

#[tokio::test]
async fn who_listens_hears_of_what_concerns_the_subscriber() {
    let scene = Scene::new(Duration::ZERO).await;
    let mut listening = scene.subscribers.listen(acme(), "ann".into());
    for of_others in [
        Changed::Subscriber(acme(), "bob".into()),
        Changed::Subscriber("globex".into(), "ann".into()),
        Changed::Tenant("globex".into()),
    ] {
        scene.subscribers.forget(of_others);
    }
    assert!(listening.changed().now_or_never().is_none());
    for own in [Changed::Subscriber(acme(), "ann".into()), Changed::Tenant(acme())] {
        scene.subscribers.forget(own);
        assert!(listening.changed().now_or_never().is_some());
        assert!(listening.changed().now_or_never().is_none(), "once a change");
    }
    // A lagging listener wakes without the details.
    for _ in 0..1_000 {
        scene.subscribers.forget(Changed::Tenant("globex".into()));
    }
    assert!(listening.changed().now_or_never().is_some());
}
