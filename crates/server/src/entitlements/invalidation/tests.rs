//! Tests of invalidation messages, on nodes that share a ledger and a Redis.

use std::time::Instant;

use futures_util::FutureExt as _;
use seatkeeper_core::{Actor, Origin, RegistryTime, Seats, Span, TenantId, UserId};
use seatkeeper_ledger::licenses::LicenseId;
use seatkeeper_ledger::subscriptions::NewSubscription;
use seatkeeper_ledger::{Ledger, PostgresUrl, Settings, Write};
use seatkeeper_testbed::postgres;
use seatkeeper_testbed::proxy::{Network, Proxy};
use seatkeeper_testbed::redis::Redis;
use uuid::Uuid;

use super::*;
use crate::entitlements::{Entitlements, Licenses, Subscribers};
use seatkeeper_engine::WorkerSet;

const DEADLINE: Duration = Duration::from_secs(30);

const NOW: RegistryTime = RegistryTime::from_millis(1_800_000_000_000);

#[test]
fn every_change_is_read_as_it_was_told() {
    let acme = TenantId::new("ac\"me\u{1f3ab}");
    for changed in [
        Changed::Subscriber(acme.clone(), "ann".into()),
        Changed::Tenant(acme.clone()),
        Changed::License(acme, LicenseId(Uuid::from_u128(7))),
        Changed::Anything,
    ] {
        assert_eq!(Message::read(Message::from_change(&changed).to_text().as_bytes()), changed);
    }
}

#[test]
fn what_cannot_be_read_may_have_been_anything() {
    for text in ["", "{", "\"plan\"", "{\"subscriber\":{\"tenant\":7}}", "\u{0}"] {
        assert_eq!(Message::read(text.as_bytes()), Changed::Anything, "{text}");
    }
}

/// A node of a two-node deployment with a shared ledger.
struct Node {
    entitlements: Arc<Entitlements>,
    workers: WorkerSet,
}

impl Node {
    fn start(ledger: &Ledger, url: &str) -> Self {
        let for_an_hour = Duration::from_secs(3_600);
        let licenses = Licenses::new(ledger.clone(), for_an_hour);
        let redis = Servers::new(url.parse().expect("a URL"));
        let subscribers = Subscribers::new(ledger.clone(), for_an_hour, Some(redis.clone()));
        let others = Others {
            redis: Some(redis.clone()),
            notices: ledger.notices(),
            is_redis_well: Arc::new(|| true),
        };
        let entitlements = Arc::new(Entitlements { licenses, subscribers, others: Some(others) });
        let workers = WorkerSet::new();
        workers.start(Listener::new(redis, Arc::clone(&entitlements), Arc::default(), workers.stopping()));
        if let Some(notices) = ledger.notices() {
            let (entitlements, stopping) = (Arc::clone(&entitlements), workers.stopping());
            workers.start(NoticeReader { notices, entitlements, endings: Arc::default(), stopping });
        }
        Self { entitlements, workers }
    }

    async fn limit(&self) -> Seats {
        let subscriber =
            self.entitlements.subscribers.get(&acme(), &UserId::from("ann")).await.expect("a limit");
        subscriber.entitled(NOW, Span::from_secs(90)).terms.limit
    }

    /// Waits until the limit is `wanted`.
    async fn comes_to(&self, wanted: Seats) {
        let deadline = Instant::now() + DEADLINE;
        while self.limit().await != wanted {
            assert!(Instant::now() < deadline, "the limit is still {:?}", self.limit().await);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn acme() -> TenantId {
    TenantId::from("acme")
}

async fn subscribe(ledger: &Ledger) {
    let origin = Origin { actor: Actor::System, request: None };
    let write = Write { origin: &origin, at: NOW, idempotency: None, home: None, expected_version: None };
    let plan = "premium".parse().expect("a name");
    let new = NewSubscription { tenant: acme(), user: "ann".into(), plan, starts_at: None, ends_at: None };
    ledger.create_subscription(new, write).await.expect("a subscription");
}

#[tokio::test]
async fn what_changes_on_one_node_counts_on_another_that_hears_of_it() {
    let (dir, redis) = (tempfile::tempdir().expect("a directory"), Redis::start());
    let ledger = Ledger::open(Settings::new(dir.path())).await.expect("a ledger");
    let (one, other) = (Node::start(&ledger, &redis.url()), Node::start(&ledger, &redis.url()));
    assert_eq!((one.limit().await, other.limit().await), (Seats(1), Seats(1)));
    subscribe(&ledger).await;
    // The second node may not have subscribed yet, so the change is published repeatedly.
    let telling = async {
        loop {
            one.entitlements.changed(Changed::Subscriber(acme(), "ann".into())).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        () = telling => {}
        () = other.comes_to(Seats(4)) => {}
    }
    one.workers.stop().await;
    other.workers.stop().await;
}

#[tokio::test]
async fn whoever_was_cut_off_forgets_everything_when_it_is_back() {
    let (dir, redis) = (tempfile::tempdir().expect("a directory"), Redis::start());
    let ledger = Ledger::open(Settings::new(dir.path())).await.expect("a ledger");
    let proxy = Proxy::start(([127, 0, 0, 1], redis.port()).into(), 1).await;
    let node = Node::start(&ledger, &format!("redis://{}", proxy.address()));
    assert_eq!(node.limit().await, Seats(1));
    let listeners = redis::cmd("PUBSUB").arg("NUMSUB").arg(ENTITLEMENTS.redis).take();
    let deadline = Instant::now() + DEADLINE;
    while redis.ask::<(String, u32)>(listeners.clone()).1 == 0 {
        assert!(Instant::now() < deadline, "nobody listens");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    proxy.set(Network::Cut);
    subscribe(&ledger).await;
    proxy.set(Network::Well);
    node.comes_to(Seats(4)).await;
    node.workers.stop().await;
}

#[tokio::test]
async fn a_change_counts_on_another_node_while_redis_is_away() {
    let (database, mut redis) = (postgres::database(), Redis::start());
    let url: PostgresUrl = database.url().parse().expect("a URL");
    let ledger = Ledger::open(Settings::new(url)).await.expect("a ledger");
    redis.kill();
    let (one, other) = (Node::start(&ledger, &redis.url()), Node::start(&ledger, &redis.url()));
    let mut listening = other.entitlements.subscribers.listen(acme(), "ann".into());
    let deadline = Instant::now() + DEADLINE;
    // The first invalidation comes once the node listens.
    while listening.changed().now_or_never().is_none() {
        assert!(Instant::now() < deadline, "the node does not listen");
        one.entitlements.changed(Changed::Subscriber(acme(), "ann".into())).await;
    }
    assert_eq!((one.limit().await, other.limit().await), (Seats(1), Seats(1)));
    subscribe(&ledger).await;
    one.entitlements.changed(Changed::Subscriber(acme(), "ann".into())).await;
    other.comes_to(Seats(4)).await;
    one.workers.stop().await;
    other.workers.stop().await;
    ledger.close().await;
}
