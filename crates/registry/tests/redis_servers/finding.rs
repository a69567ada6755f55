//! Sessions admitted by another node are found at every stage on the way to the ledger.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use seatkeeper_core::{Authority, Holder, Origin, PoolId, Reach, Region, RegistryTime, SessionId, UserId};
use seatkeeper_registry::redis::{SearchResult, SessionLocator, Settings};
use seatkeeper_registry::{Admission as _, Heartbeat, Journal as _, Sessions as _};
use seatkeeper_testbed::redis::Redis;

use crate::node::Node;

/// A ledger that receives the waiting events right after the first query.
struct GetsItMeanwhile {
    drain: Arc<Node>,
    pool: PoolId,
    has_it: AtomicBool,
}

#[async_trait]
impl SessionLocator for GetsItMeanwhile {
    async fn find(&self, _id: SessionId, _who: &Authority) -> SearchResult {
        if self.has_it.swap(true, Ordering::Relaxed) {
            return SearchResult::In(self.pool.clone(), None);
        }
        let read = self.drain.registry.journal_read(10).await.expect("it is reached");
        let last = read.entries.last().expect("the admission waits");
        self.drain.registry.journal_acknowledge(last.receipt).await.expect("it is reached");
        SearchResult::NotOnRecord
    }
}

#[tokio::test]
async fn one_that_gets_on_record_while_it_is_looked_for_is_found() {
    let redis = Redis::start();
    let one = Arc::new(Node::on(&redis).await);
    let pool = one.pool().await;
    let id = one.admit(&pool, "ann").await;
    let record = GetsItMeanwhile { drain: Arc::clone(&one), pool, has_it: AtomicBool::new(false) };
    let servers = redis.url().parse().expect("a URL");
    let other = one.beside_on(servers, Settings::default(), Arc::new(record));
    let renewed = other.renew(id).await.expect("it is reached");
    assert!(matches!(renewed, Heartbeat::Renewed(_)), "{renewed:?}");
}

/// An empty ledger that counts queries.
#[derive(Default)]
struct Counted(AtomicUsize);

#[async_trait]
impl SessionLocator for Counted {
    async fn find(&self, _id: SessionId, _who: &Authority) -> SearchResult {
        self.0.fetch_add(1, Ordering::Relaxed);
        SearchResult::NotOnRecord
    }
}

#[tokio::test]
async fn a_node_that_has_just_come_finds_every_session_without_the_record() {
    // Small pools, and one large pool.
    const POOLS: usize = 40;
    const SEATS: usize = 30;
    let redis = Redis::start();
    let one = Node::on(&redis).await;
    let mut sessions = Vec::new();
    for number in 0..POOLS {
        let pool = one.pool_called(&format!("pool-{number}")).await;
        sessions.push(one.admit(&pool, "ann").await);
    }
    let large = one.pool_of("large", SEATS as u32).await;
    for number in 0..SEATS {
        sessions.push(one.admit(&large, &format!("holder-{number}")).await);
    }
    let record = Arc::new(Counted::default());
    let servers = redis.url().parse().expect("a URL");
    let other = one.beside_on(servers, Settings::default(), Arc::clone(&record) as _);
    renews_all(&other, &sessions, &record).await;
}

/// Expects that `node` renews each session without a query of `record`.
async fn renews_all(node: &Node, sessions: &[SessionId], record: &Counted) {
    let asked = record.0.load(Ordering::Relaxed);
    for id in sessions {
        let renewed = node.renew(*id).await.expect("it is reached");
        assert!(matches!(renewed, Heartbeat::Renewed(_)), "{renewed:?}");
    }
    assert_eq!(record.0.load(Ordering::Relaxed), asked, "the record was asked");
}

#[tokio::test]
async fn sessions_admitted_by_another_node_after_the_first_search_are_found_without_the_record() {
    // A small pool, and a large pool.
    const SEATS: u32 = 30;
    let redis = Redis::start();
    let one = Node::on(&redis).await;
    let (small, large) = (one.pool_of("small", SEATS).await, one.pool_of("large", SEATS).await);
    let record = Arc::new(Counted::default());
    let servers = redis.url().parse().expect("a URL");
    let other = one.beside_on(servers, Settings::default(), Arc::clone(&record) as _);
    for number in 0..SEATS {
        let holder = format!("holder-{number}");
        let mut admitted = vec![one.admit(&large, &holder).await];
        if number < 8 {
            admitted.push(one.admit(&small, &holder).await);
        }
        renews_all(&other, &admitted, &record).await;
    }
}

#[tokio::test]
async fn more_admissions_than_the_ring_has_entries_are_found_without_the_record() {
    const MORE_THAN_THE_RING: u32 = 300;
    let redis = Redis::start();
    let one = Node::on(&redis).await;
    let pool = one.pool_of("large", MORE_THAN_THE_RING + 2).await;
    let record = Arc::new(Counted::default());
    let servers = redis.url().parse().expect("a URL");
    let other = one.beside_on(servers, Settings::default(), Arc::clone(&record) as _);
    let mut sessions = Vec::new();
    for number in 0..MORE_THAN_THE_RING {
        sessions.push(one.admit(&pool, &format!("holder-{number}")).await);
    }
    renews_all(&other, &sessions, &record).await;
    for holder in ["ann", "bob"] {
        renews_all(&other, &[one.admit(&pool, holder).await], &record).await;
    }
}

#[tokio::test]
async fn sessions_filled_by_a_rebuild_are_found_without_the_record() {
    let redis = Redis::start();
    let one = Node::on(&redis).await;
    let pool = one.pool_of("photo", 2).await;
    let record = Arc::new(Counted::default());
    let servers = redis.url().parse().expect("a URL");
    let other = one.beside_on(servers, Settings::default(), Arc::clone(&record) as _);
    // The other node searches the bucket just before the rebuild, and does not see Bob.
    let invented = SessionId::mint(RegistryTime::default(), pool.bucket(), Region::default(), 1);
    other.renew(invented).await.expect("it is reached");
    let bob = one.admit(&pool, "bob").await;
    let who = Authority::new("acme".into(), Reach::Tenant);
    let live = one.registry.session(bob, &who).await.expect("it is reached").expect("it is live");
    one.serve(2).await;
    one.registry.open(&pool, 1, None, vec![live.session]).await.expect("it can be opened");
    renews_all(&other, &[bob], &record).await;
}

#[tokio::test]
async fn a_session_that_never_was_is_asked_for_once_where_nothing_waits_in_the_journal() {
    let redis = Redis::start();
    let one = Node::on(&redis).await;
    let pool = one.pool().await;
    let known = one.admit(&pool, "ann").await;
    let read = one.registry.journal_read(10).await.expect("it is reached");
    one.registry
        .journal_acknowledge(read.entries.last().expect("an admission").receipt)
        .await
        .expect("it is reached");
    let record = Arc::new(Counted::default());
    let servers = redis.url().parse().expect("a URL");
    let other = one.beside_on(servers, Settings::default(), Arc::clone(&record) as _);
    // A read of the journal acknowledges recorded events to Redis.
    tokio::time::sleep(Duration::from_millis(300)).await;
    one.registry.journal_read(10).await.expect("it is reached");
    for asked in 1..4 {
        let invented =
            SessionId::mint(RegistryTime::default(), known.bucket(), Region::default(), rand::random());
        assert_eq!(other.renew(invented).await.expect("it is reached"), Heartbeat::NeverWas);
        assert_eq!(record.0.load(Ordering::Relaxed), asked);
    }
}

/// A locator like the engine's: a caller with a single pool is led to the pool, without a look into the ledger.
struct OwnPoolFirst {
    stranger: PoolId,
    recorded: PoolId,
}

#[async_trait]
impl SessionLocator for OwnPoolFirst {
    async fn find(&self, _id: SessionId, who: &Authority) -> SearchResult {
        match &who.reach {
            Reach::Own(_) => SearchResult::In(self.stranger.clone(), None),
            Reach::Tenant => SearchResult::In(self.recorded.clone(), Some(Holder::new("ann"))),
        }
    }
}

#[tokio::test]
async fn a_strangers_heartbeat_hides_a_session_from_nobody() {
    const MORE_THAN_THE_RING: u32 = 300;
    let redis = Redis::start();
    let one = Node::on(&redis).await;
    let pool = one.pool_of("large", MORE_THAN_THE_RING + 1).await;
    let stranger = one.pool_called("eve").await;
    let record = OwnPoolFirst { stranger, recorded: pool.clone() };
    let servers = redis.url().parse().expect("a URL");
    let other = one.beside_on(servers, Settings::default(), Arc::new(record));
    // The other node searches the bucket before Ann comes. The ring of admissions has forgotten Ann at the next reading.
    let invented = SessionId::mint(RegistryTime::default(), pool.bucket(), Region::default(), 1);
    other.renew(invented).await.expect("it is reached");
    let ann = one.admit(&pool, "ann").await;
    for number in 0..MORE_THAN_THE_RING {
        one.admit(&pool, &format!("holder-{number}")).await;
    }
    let eve = Authority::new("acme".into(), Reach::Own(UserId::new("eve")));
    let refused = other.registry.heartbeat(ann, &eve, &Origin::SYSTEM).await.expect("it is reached");
    assert_eq!(refused, Heartbeat::Missing);
    let renewed = other.renew(ann).await.expect("it is reached");
    assert!(matches!(renewed, Heartbeat::Renewed(_)), "{renewed:?}");
}
