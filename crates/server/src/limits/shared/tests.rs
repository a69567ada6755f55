//! Tests of the counting in Redis: the script against the pure function, and several nodes on a server or a
//! cluster.

use futures_util::future::join_all;
use seatkeeper_redis::Servers;
use seatkeeper_testbed::redis::{Memory, Redis, RedisCluster, RedisSetup};

use super::{PATIENCE, PAUSE, Shared, name_of};
use crate::limits::key::Key;
use crate::limits::rate::{Rate, Verdict};

fn servers(url: &str) -> Servers {
    Servers::new(url.parse().expect("a Redis"))
}

fn key(number: u64) -> Key {
    Key(u128::from(number).to_be_bytes())
}

/// The script equals the pure function: the script's verdict follows from the script's time, for any earlier
/// state.
#[tokio::test(flavor = "multi_thread")]
async fn the_script_decides_as_the_rate_does() {
    let redis = Redis::start();
    let servers = servers(&redis.url());
    let shared = Shared::new(servers.clone());
    let seed: u64 = rand::random();
    let mut state = seed;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 20) % below
    };
    let clock = |servers: Servers| async move {
        let (seconds, micros): (u64, u64) =
            servers.query("any", &redis::cmd("TIME")).await.expect("the time");
        seconds * 1_000_000 + micros
    };
    for round in 0..500 {
        let rate = Rate { burst: 1 + random(50), interval: 1 + random(10_000_000) };
        let key = key(round);
        let mut before = 0;
        if random(4) > 0 {
            // From long ago to far ahead, mostly within a burst of the present.
            let now = clock(servers.clone()).await;
            before = now + random(2 * rate.burst * rate.interval) - random(1_000_000);
            let put = redis::cmd("SET").arg(name_of(key)).arg(before).take();
            servers.query::<()>(&name_of(key), &put).await.expect("it is put");
        }
        for _ in 0..3 {
            let told = shared.count(key, rate).await.expect("an answer");
            assert_eq!(told, rate.decide(told.now, before), "seed {seed}: {rate:?} {before}");
            before = told.busy_until;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_at_once_through_several_ways_exactly_the_burst_passes() {
    let redis = Redis::start();
    let ways: Vec<_> = (0..3).map(|_| Shared::new(servers(&redis.url()))).collect();
    assert_eq!(passed(&ways).await, 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_counts_as_well() {
    let cluster = RedisCluster::start(3, &RedisSetup::default());
    let ways: Vec<_> = (0..3).map(|_| Shared::new(servers(&cluster.url()))).collect();
    assert_eq!(passed(&ways).await, 10);
}

async fn passed(ways: &[Shared]) -> usize {
    // No use comes back during the test.
    let rate = Rate { burst: 10, interval: 3_600_000_000 };
    let asked = (0..1_000).map(|number| ways[number % ways.len()].count(key(7), rate));
    let verdicts: Vec<Option<Verdict>> = join_all(asked).await;
    let told: Vec<_> = verdicts.into_iter().map(|verdict| verdict.expect("an answer")).collect();
    told.iter().filter(|verdict| verdict.passes).count()
}

/// Keys in Redis expire by themselves.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_stays_of_who_comes_no_more() {
    let redis = Redis::start();
    let servers = servers(&redis.url());
    let shared = Shared::new(servers.clone());
    let rate = Rate { burst: 3, interval: 20_000 };
    shared.count(key(1), rate).await.expect("an answer");
    let left: i64 =
        servers.query("any", &redis::cmd("PTTL").arg(name_of(key(1))).take()).await.expect("it lasts");
    assert!((0..=21).contains(&left), "{left}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_is_away_is_asked_by_one_request_a_second() {
    let mut redis = Redis::start();
    let shared = Shared::new(servers(&redis.url()));
    let rate = Rate { burst: 3, interval: 3_600_000_000 };
    assert!(shared.count(key(1), rate).await.is_some());
    redis.kill();
    assert_eq!(shared.count(key(1), rate).await, None);
    let began = std::time::Instant::now();
    for _ in 0..1_000 {
        assert_eq!(shared.count(key(1), rate).await, None);
    }
    assert!(began.elapsed() < PATIENCE, "nobody else waited for it");
    redis.start_again(Memory::Lost);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while shared.count(key(2), rate).await.is_none() {
        assert!(std::time::Instant::now() < deadline, "it never counts again");
        tokio::time::sleep(PAUSE / 10).await;
    }
}

/// Verdicts of a batch belong to their own calls.
#[tokio::test(flavor = "multi_thread")]
async fn each_of_many_keys_that_come_at_once_has_its_own_rate() {
    let redis = Redis::start();
    let shared = Shared::new(servers(&redis.url()));
    let burst_of = |number: u64| 1 + number % 7;
    let ask = |number: u64| {
        let rate = Rate { burst: burst_of(number), interval: 3_600_000_000 };
        shared.count(key(number), rate)
    };
    let numbers = || (0..10).flat_map(|_| 0..50);
    let verdicts = join_all(numbers().map(ask)).await;
    let mut passed = [0; 50];
    for (number, verdict) in numbers().zip(verdicts) {
        passed[usize::try_from(number).unwrap()] += u64::from(verdict.expect("an answer").passes);
    }
    assert!(passed.iter().zip(0..).all(|(passed, number)| *passed == burst_of(number)), "{passed:?}");
}
