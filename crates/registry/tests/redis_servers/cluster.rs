//! Masters of a cluster: moves of slots, and silence of a master.

use std::sync::Arc;
use std::time::{Duration, Instant};

use seatkeeper_core::{Bucket, PoolId, Span};
use seatkeeper_redis::ServerSettings;
use seatkeeper_registry::redis::Settings;
use seatkeeper_registry::{Answer, Condition, Error, Expiry as _, Journal as _, Rebuild as _, State};
use seatkeeper_testbed::clock::Clock;
use seatkeeper_testbed::redis::{Redis, RedisCluster, RedisSetup};

use crate::node::{Node, REACHED_MAX};

const HOUR: Duration = Duration::from_secs(3_600);

/// Longer than any step of a test, and shorter than the difference of two clocks.
const QUARTER: Span = Span::from_secs(900);

#[tokio::test]
async fn a_bucket_is_found_where_its_slot_has_moved_and_served_once_it_was_filled_there() {
    let cluster = RedisCluster::start(3, &RedisSetup::default());
    let node = Node::over(cluster.url().parse().expect("a URL")).await;
    let pool = node.pool().await;
    node.admit(&pool, "ann").await;
    let at = usize::from(pool.bucket().number());
    let before = node.registry.conditions().await[at].server.clone().expect("it is reached");

    let head = format!("{:03}:head", pool.bucket().number());
    let mut keys =
        cluster.nodes().iter().flat_map(|node| node.ask::<Vec<String>>(redis::cmd("KEYS").arg("*").take()));
    let head = keys.find(|key| key.ends_with(&head)).expect("a master has it");
    let slot: u32 = cluster.nodes()[0].ask(redis::cmd("CLUSTER").arg("KEYSLOT").arg(head).take());
    let holds = |node: &Redis| {
        let command = redis::cmd("CLUSTER").arg("COUNTKEYSINSLOT").arg(slot).take();
        node.ask::<u32>(command) > 0
    };
    let from = cluster.nodes().iter().position(holds).expect("a master has it");
    let to = (from + 1) % cluster.nodes().len();
    // The old master loses its data.
    cluster.nodes()[from].ask::<()>(redis::cmd("FLUSHALL"));
    let id = |n: usize| cluster.nodes()[n].ask::<String>(redis::cmd("CLUSTER").arg("MYID").take());
    let set_slot = |n: usize, how: &str, id: String| {
        cluster.nodes()[n].ask::<()>(redis::cmd("CLUSTER").arg("SETSLOT").arg(slot).arg(how).arg(id).take());
    };
    // The importing master takes the slot first. A master that takes a slot without `IMPORTING` has no newer
    // configuration epoch than the old master, and the nodes would disagree for a while.
    set_slot(to, "IMPORTING", id(from));
    for n in [to, from] {
        set_slot(n, "NODE", id(to));
    }

    let refused = node.claim(&pool, "bob").await;
    assert!(
        matches!(refused, Err(Error::NotServing { .. })),
        "it is sent on, and nothing is there: {refused:?}"
    );
    let started = Instant::now();
    while node.registry.conditions().await[at].server.as_ref().is_none_or(|server| *server == before) {
        assert!(started.elapsed() < REACHED_MAX, "the slot's new master is not found");
    }
    node.serve(2).await;
    let pool = node.pool().await;
    node.admit(&pool, "bob").await;
    assert!(holds(&cluster.nodes()[to]));
}

/// A master falls silent when its events wait for the ledger, and the latest survey says that it answers.
#[tokio::test]
async fn a_master_that_falls_silent_holds_up_no_events_of_another() {
    const RESPONSE_MAX: Duration = Duration::from_secs(60);
    let cluster = RedisCluster::start(3, &RedisSetup::default());
    let servers: ServerSettings = cluster.url().parse().expect("a URL");
    let servers = ServerSettings { response_timeout: RESPONSE_MAX, ..servers };
    let settings = Settings { journal_poll: Duration::from_secs(3_600), ..Settings::default() };
    let node = Node::with(servers.clone(), settings).await;
    let no_linger = Settings { journal_linger: Duration::ZERO, ..Settings::default() };
    let other = node.beside(servers, no_linger);
    let (silent, served) = pools_on_and_off(&cluster.nodes()[0], &node).await;
    // No reply of the node has the event of the other node: the journal must be read.
    for (admits, holder) in [(&node, "ann"), (&other, "bob"), (&node, "carol")] {
        admits.admit(&silent, holder).await;
    }
    let seen = other.registry.journal_read(100).await.expect("all masters answer");
    assert_eq!(seen.entries.len(), 3, "{seen:?}");
    let oldest = node.registry.journal_read(1).await.expect("all masters answer");
    node.registry.journal_acknowledge(oldest.entries[0].receipt).await.expect("a note");

    let began = Instant::now();
    cluster.nodes()[0].pause();
    let refused = node.registry.journal_read(100).await;
    assert!(matches!(refused, Err(Error::TimedOut)), "{refused:?}");
    // The other node makes a survey for each read.
    let nothing = other.registry.journal_read(100).await.expect("a silent master is no failure");
    assert!(nothing.entries.is_empty(), "{nothing:?}");
    node.admit(&served, "bob").await;
    let read = node.registry.journal_read(100).await.expect("a master answers");
    assert!(read.entries.iter().all(|entry| entry.event.pool == served) && !read.entries.is_empty());

    let took = began.elapsed();
    cluster.nodes()[0].resume();
    assert!(took < RESPONSE_MAX / 2, "it waited for the silent master: {took:?}");
}

/// The master of the first bucket has the registry's clock until it falls silent. Whoever asks for the time waits for no
/// time limit of the silent master: neither for the limit of a call, nor for the limit of a survey.
#[tokio::test]
async fn a_master_that_falls_silent_leaves_the_clock_to_another() {
    const RESPONSE_MAX: Duration = Duration::from_secs(60);
    let cluster = RedisCluster::start(3, &RedisSetup::default());
    let servers: ServerSettings = cluster.url().parse().expect("a URL");
    let node = Node::over(ServerSettings { response_timeout: RESPONSE_MAX, ..servers }).await;
    let before = node.registry.now().await.expect("all masters answer");
    for master in cluster.nodes() {
        let bucket = bucket_on(master);
        master.pause();
        // The first limit may be that of a call, and the second that of a survey; the rest is for a busy machine.
        let time_limits = async {
            for _ in 0..6 {
                let refused = node.registry.sweep(bucket, 1).await;
                assert!(matches!(refused, Err(Error::TimedOut)), "{refused:?}");
            }
        };
        tokio::select! {
            biased;
            now = node.registry.now() => assert!(now.expect("two masters answer") >= before),
            () = time_limits => panic!("it waited for the silent master"),
        }
        master.resume();
    }
}

/// The clocks of the masters are hours apart.
#[tokio::test]
async fn the_time_of_a_pool_is_that_of_its_own_master() {
    let clocks = [0, 1, 2].map(|hours| {
        let clock = Arc::new(Clock::new());
        clock.set_back(hours * HOUR);
        clock
    });
    let cluster = RedisCluster::start_by(&clocks);
    let node = Node::over(cluster.url().parse().expect("a URL")).await;
    let mut admitted_at = Vec::new();
    // Twice, since each reading of one master's clock must leave the estimates of the others alone.
    for (turn, master) in cluster.nodes().iter().chain(cluster.nodes()).enumerate() {
        let (pool, _) = pools_on_and_off(master, &node).await;
        let before = node.registry.now_in(pool.bucket()).await.expect("the time");
        let estimate = node.registry.approximate_now_in(pool.bucket()).await.expect("the time");
        let claimed = node.claim(&pool, &format!("ann-{turn}")).await.expect("a seat");
        let Answer::Granted { session, .. } = claimed.answer else { panic!("{claimed:?}") };
        let started = session.session.started;
        assert!(before <= started && started.since(before) < QUARTER, "{before:?}, {started:?}");
        assert!(started.since(estimate).max(estimate.since(started)) < QUARTER, "{estimate:?}, {started:?}");
        admitted_at.push(started);
    }
    for (earlier, later) in [(1, 0), (2, 1)] {
        assert!(admitted_at[earlier] + QUARTER < admitted_at[later], "the clocks agree: {admitted_at:?}");
    }
}

/// A master falls silent between the survey of a renewal and the renewal of its own leases.
#[tokio::test]
async fn a_master_that_falls_silent_ends_no_lease_of_another() {
    const RESPONSE_MAX: Duration = Duration::from_secs(60);
    let cluster = RedisCluster::start(3, &RedisSetup::default());
    let servers: ServerSettings = cluster.url().parse().expect("a URL");
    let servers = ServerSettings { response_timeout: RESPONSE_MAX, ..servers };
    let settings = Settings { lease: Some(Duration::from_secs(10)), ..Settings::default() };
    let node = Node::with(servers, settings).await;
    let began = Instant::now();
    loop {
        assert!(began.elapsed() < REACHED_MAX, "no lease is half over");
        let surveyed = node.registry.conditions().await;
        assert!(surveyed.iter().all(is_leased), "{surveyed:?}");
        cluster.nodes()[0].pause();
        let a_lease_ends = async {
            loop {
                let conditions = node.registry.conditions().await;
                let mut reached = conditions.iter().filter(|condition| condition.server.is_some());
                if !reached.all(is_leased) {
                    return;
                }
            }
        };
        let renewed = tokio::select! {
            biased;
            renewed = node.registry.renew_leases() => renewed,
            () = a_lease_ends => panic!("the renewal waits for the silent master"),
        };
        cluster.nodes()[0].resume();
        match renewed {
            // No lease on the silent master was half over.
            Ok(()) => tokio::time::sleep(Duration::from_millis(100)).await,
            Err(error) => {
                assert!(matches!(error, Error::TimedOut), "{error:?}");
                return;
            }
        }
    }
}

fn is_leased(condition: &Condition) -> bool {
    matches!(condition.state, State::Serving { is_leased: true, .. })
}

/// Returns a bucket on a master.
fn bucket_on(master: &Redis) -> Bucket {
    let heads: Vec<String> = master.ask(redis::cmd("KEYS").arg("*:head").take());
    let number = |head: &str| head.split(['}', ':']).nth(2).and_then(|text| text.parse::<u16>().ok());
    let number = heads.first().and_then(|head| number(head)).expect("it has a bucket");
    Bucket::all().find(|bucket| bucket.number() == number).expect("a bucket")
}

/// Opens pools until `master` has a pool, and another master as well.
async fn pools_on_and_off(master: &Redis, node: &Node) -> (PoolId, PoolId) {
    let (mut on, mut off) = (None, None);
    for n in 0.. {
        let pool = node.pool_of(&format!("photo-{n}"), 100).await;
        let head = format!("*{:03}:head", pool.bucket().number());
        let is_on = !master.ask::<Vec<String>>(redis::cmd("KEYS").arg(head).take()).is_empty();
        if is_on {
            on = Some(pool)
        } else {
            off = Some(pool)
        }
        if let (Some(on), Some(off)) = (&on, &off) {
            return (on.clone(), off.clone());
        }
    }
    unreachable!("each master has buckets")
}
