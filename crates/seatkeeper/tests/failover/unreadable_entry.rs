//! An undecodable journal entry: the entry's bucket waits for an operator, and the other buckets go on.

use std::time::Duration;

use seatkeeper_testbed::redis::Redis;
use serde_json::Value;

use super::support::{Nodes, epochs_per_bucket, released, renewed, seat, seated};
use crate::harness::Scrape;
use crate::until::{until, within};

/// Time limit for the repetition of a failed rebuild.
const REBUILT_MAX: Duration = Duration::from_secs(90);

/// Returns the buckets with a pool in Redis.
fn buckets_in_use(redis: &Redis) -> Vec<u16> {
    let pools: Vec<String> = redis.ask(redis::cmd("KEYS").arg("sk:*:p*").take());
    let number = |key: &String| key.split(['}', ':']).nth(2).and_then(|text| text.parse().ok());
    let mut buckets: Vec<u16> = pools.iter().map(|key| number(key).expect("a bucket")).collect();
    buckets.sort_unstable();
    buckets.dedup();
    buckets
}

/// Waits until `/health/redis` has this status, and returns the problems.
async fn redis_is(nodes: &Nodes, status: &str) -> Vec<String> {
    let url = format!("{}/health/redis", nodes.harnesses[0].url());
    within(REBUILT_MAX, "the status of Redis", async || {
        let body: Value = reqwest::get(&url).await.expect("an answer").json().await.expect("JSON");
        if body["status"] != status {
            return Err(body.to_string());
        }
        let problems = body["problems"].as_array().cloned().unwrap_or_default();
        Ok(problems.iter().map(|text| text.as_str().expect("a text").to_owned()).collect())
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreadable_entry_waits_for_an_operator_and_holds_up_its_bucket_alone() {
    let redis = Redis::start();
    let nodes = tokio::task::block_in_place(|| Nodes::over(&[redis.url(), redis.url()]));
    let clients = nodes.clients();
    let held_up = nodes.harnesses[0].license(2).await;
    let ann = seat(&clients[0], &held_up, "ann").await;
    let eve = seat(&clients[0], &held_up, "eve").await;
    let bucket = buckets_in_use(&redis)[0];
    let other = loop {
        let license = nodes.harnesses[0].license(2).await;
        seat(&clients[0], &license, "ann").await;
        if buckets_in_use(&redis).len() > 1 {
            break license;
        }
    };
    let foreign = redis.add_foreign_entry(bucket);

    // Behind the entry, in the journal alone.
    clients[0].release(&eve).await.expect(503);
    let problem = format!(
        "bucket {bucket} is held up: entry {} of its journal {} cannot be read",
        foreign.id, foreign.journal
    );
    assert_eq!(redis_is(&nodes, "unfit").await, [problem]);
    let urls = [nodes.harnesses[0].url().to_owned()];
    until("the lag of the journal grows", async || {
        let lag = Scrape::fetch(&urls).await.value("journal_lag_seconds");
        if lag > 1.0 { Ok(()) } else { Err(lag.to_string()) }
    })
    .await;
    clients[0].acquire(&held_up["license_key"], "bob").await.expect(503);
    renewed(&clients[1], &ann).await;
    let carl = seat(&clients[1], &other, "carl").await;
    released(&clients[0], &carl).await;

    // A rebuild replays the journal, and does not skip the entry either.
    let before = epochs_per_bucket(&nodes).await;
    redis.ask::<()>(redis::cmd("DEL").arg(&foreign.head).take());
    within(REBUILT_MAX, "a second rebuild begins", async || match nodes.raised(&before).await {
        raised if raised >= 2 => Ok(()),
        raised => Err(format!("{raised} raises")),
    })
    .await;
    clients[0].heartbeat(&ann).await.expect(503);
    seat(&clients[0], &other, "dora").await;

    redis.delete_entry(&foreign);
    renewed(&clients[0], &ann).await;
    // The end behind the entry is on record: the license has a free seat.
    seated(&clients[1], &held_up["license_key"], "bob").await;
    assert_eq!(redis_is(&nodes, "ok").await, [""; 0]);
    drop(nodes.close());
}
