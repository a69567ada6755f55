//! Tests of the shared cache on a real Redis.

use seatkeeper_testbed::redis::{Memory, Redis};

use super::*;

struct Scene {
    redis: Redis,
    shared: Shared,
}

impl Scene {
    fn new(patience: Duration) -> Self {
        let redis = Redis::start();
        let shared = Shared::new(Servers::new(redis.url().parse().expect("a URL")), patience);
        Self { redis, shared }
    }

    async fn mark(&self, user: &str) -> EntryMark {
        match self.shared.get(&tenant(), &user.into()).await {
            Some(CacheRead::Nothing(mark)) => mark,
            Some(CacheRead::Subscriber(_)) => panic!("the cache has an entry of {user}"),
            None => panic!("Redis does not answer"),
        }
    }

    async fn put(&self, user: &str, mark: &EntryMark) {
        self.shared.put(&tenant(), &user.into(), mark, &Subscriber::default()).await;
    }

    async fn has(&self, user: &str) -> bool {
        matches!(self.shared.get(&tenant(), &user.into()).await, Some(CacheRead::Subscriber(_)))
    }
}

const DEADLINE: Duration = Duration::from_secs(30);

/// A tenant name whose braces would end a hash tag, if left unencoded.
fn tenant() -> TenantId {
    TenantId::new("}{acme}")
}

#[tokio::test]
async fn what_one_node_read_another_need_not() {
    let scene = Scene::new(DEADLINE);
    let mark = scene.mark("ann").await;
    scene.put("ann", &mark).await;
    assert!(scene.has("ann").await);
    assert!(!scene.has("bob").await);
    let left: u64 = scene.redis.ask(redis::cmd("TTL").arg(entry_key(&tenant(), &"ann".into())).take());
    assert!((1..=KEPT_SECONDS).contains(&left), "the entry lives for {left} s");
}

#[tokio::test]
async fn a_change_of_a_subscription_makes_what_was_read_of_it_count_no_more() {
    let scene = Scene::new(DEADLINE);
    let mark = scene.mark("ann").await;
    scene.put("ann", &mark).await;
    scene.put("bob", &mark).await;
    scene.shared.forget(&Changed::Subscriber(tenant(), "ann".into())).await;
    assert!(!scene.has("ann").await);
    assert!(scene.has("bob").await);
    scene.put("ann", &mark).await;
    assert!(!scene.has("ann").await, "a value read before the change must not be stored");
}

#[tokio::test]
async fn a_change_of_a_plan_makes_what_was_read_of_the_tenant_count_no_more() {
    let scene = Scene::new(DEADLINE);
    let before = scene.mark("ann").await;
    scene.put("ann", &before).await;
    scene.shared.forget(&Changed::Tenant(tenant())).await;
    assert!(!scene.has("ann").await);
    scene.put("ann", &before).await;
    assert!(!scene.has("ann").await, "a value read before the change must not be stored");
    let after = scene.mark("ann").await;
    scene.put("ann", &after).await;
    assert!(scene.has("ann").await);
}

/// The old memory may lack the change that its successor heard of.
#[tokio::test]
async fn an_entry_of_another_memory_counts_no_more() {
    let mut scene = Scene::new(DEADLINE);
    let mark = scene.mark("ann").await;
    scene.put("ann", &mark).await;
    assert!(scene.has("ann").await);
    let kept = scene.redis.snapshot();
    scene.redis.kill();
    scene.redis.start_again(Memory::Snapshot(kept));
    assert!(!scene.has("ann").await);
    scene.put("ann", &mark).await;
    assert!(!scene.has("ann").await, "a value read before the change of memory must not count");
    let mark = scene.mark("ann").await;
    scene.put("ann", &mark).await;
    assert!(scene.has("ann").await);
}

#[tokio::test]
async fn without_redis_nothing_is_known_and_nothing_fails() {
    let scene = Scene::new(Duration::from_millis(50));
    scene.redis.pause();
    assert!(scene.shared.get(&tenant(), &"ann".into()).await.is_none());
    scene.put("ann", &EntryMark { generation: 0, memory: String::new() }).await;
    scene.shared.forget(&Changed::Tenant(tenant())).await;
    scene.redis.resume();
}
