//! Health and metrics of a node while Redis or PostgreSQL is unreachable or hangs: the node names the fault,
//! and its metrics go on.

use std::fs;
use std::time::{Duration, Instant};

use seatkeeper_testbed::postgres::{Postgres, Stop};
use seatkeeper_testbed::redis::{Memory, Redis};
use serde_json::{Value, json};

use super::password::PASSWORD_FILE;
use super::support::Nodes;
use crate::harness::Scrape;
use crate::until::until;

/// Time limit for every answer on a busy machine, even while a store hangs.
const ANSWER_MAX: Duration = Duration::from_secs(15);

/// Time limit for the news that a store works again, on a busy machine. A node alone needs 2 s.
const BACK_WITHIN: Duration = Duration::from_secs(16);

struct Stage {
    nodes: Nodes,
    redis: Redis,
}

impl Stage {
    /// Waits until `/health/…` has this status, and returns the body.
    async fn health(&self, part: &str, status: &str) -> Value {
        let url = self.nodes.harnesses[0].url().to_owned();
        let code = if status == "ok" { 200 } else { 503 };
        until(&format!("{part} is {status}"), async || {
            let began = Instant::now();
            let answer = reqwest::get(format!("{url}/health/{part}")).await.expect("an answer");
            assert!(began.elapsed() < ANSWER_MAX, "{:?}", began.elapsed());
            let told = answer.status().as_u16();
            let body: Value = answer.json().await.expect("JSON");
            if body["status"] == status && told == code { Ok(body) } else { Err(format!("{told} {body}")) }
        })
        .await
    }

    /// Waits until `/health/…` and a metric say that a store works again.
    async fn is_back(&self, part: &str, metric: &str) {
        let began = Instant::now();
        self.health(part, "ok").await;
        self.metric(metric, Some(1.0)).await;
        assert!(began.elapsed() < BACK_WITHIN, "{part} is back, and told after {:?}", began.elapsed());
    }

    /// Waits until a metric has this value. Every scrape meanwhile must be answered in time.
    async fn metric(&self, name: &str, value: Option<f64>) {
        let url = self.nodes.harnesses[0].url().to_owned();
        until(&format!("{name} is {value:?}"), async || {
            let began = Instant::now();
            let scrape = Scrape::fetch(std::slice::from_ref(&url)).await;
            assert!(began.elapsed() < ANSWER_MAX, "{:?}", began.elapsed());
            let now = scrape.samples.get(name).copied();
            if now == value { Ok(()) } else { Err(format!("{now:?}")) }
        })
        .await;
    }

    /// Sends a few requests, and finds each in the counters of the next scrape.
    async fn counters_go_on(&self) {
        const COUNTER: &str = "http_requests_total{method=\"GET\",route=\"/healthz\",status=\"200\"}";
        let url = self.nodes.harnesses[0].url().to_owned();
        let count = async || Scrape::fetch(std::slice::from_ref(&url)).await.value(COUNTER);
        let before = count().await;
        for asked in 1..=3 {
            reqwest::get(format!("{url}/healthz")).await.expect("an answer");
            assert_eq!(count().await, before + f64::from(asked));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_says_what_is_wrong_with_redis_and_the_ledger() {
    let postgres = tokio::task::block_in_place(Postgres::start);
    let redis = Redis::start();
    let mut nodes = Nodes::on(postgres.url(&postgres.add_database()));
    tokio::task::block_in_place(|| nodes.add(&redis.url()));
    let mut stage = Stage { nodes, redis };
    stage.health("redis", "ok").await;
    stage.health("ledger", "ok").await;

    let mut evicting = redis::cmd("CONFIG");
    evicting.arg("SET").arg("maxmemory-policy").arg("allkeys-lru");
    stage.redis.ask::<String>(evicting);
    let unfit = stage.health("redis", "unfit").await;
    assert_eq!(unfit["problems"], json!(["its maxmemory-policy is allkeys-lru, and must be noeviction"]));

    let config = |name: &str, value: &str| {
        let mut set = redis::cmd("CONFIG");
        set.arg("SET").arg(name).arg(value);
        stage.redis.ask::<String>(set);
    };
    config("maxmemory-policy", "noeviction");
    stage.health("redis", "ok").await;
    config("min-replicas-to-write", "1");
    let refuses = stage.health("redis", "unfit").await;
    let problem = refuses["problems"][0].as_str().expect("a text");
    assert!(problem.starts_with("it refuses writes: ") && problem.contains("NOREPLICAS"), "{refuses}");
    config("min-replicas-to-write", "0");
    stage.health("redis", "ok").await;

    stage.redis.kill();
    stage.health("redis", "down").await;
    stage.metric("redis_up", Some(0.0)).await;
    stage.redis.start_again(Memory::Lost);
    stage.health("redis", "ok").await;

    postgres.stop(Stop::Immediate);
    let down = stage.health("ledger", "down").await;
    assert_eq!(down, json!({ "status": "down", "problems": ["the database does not answer"] }));
    stage.metric("ledger_up", Some(0.0)).await;
    stage.metric("redis_up", Some(1.0)).await;
    postgres.start_again();
    stage.is_back("ledger", "ledger_up").await;
    // A hanging Redis must not make the node hang.
    stage.redis.pause();
    assert_eq!(stage.health("redis", "down").await["problems"], json!(["1 of 1 servers do not answer"]));
    stage.metric("redis_up", Some(0.0)).await;
    stage.metric("redis_ops_per_sec", None).await;
    stage.counters_go_on().await;
    stage.redis.resume();
    stage.is_back("redis", "redis_up").await;
    stage.nodes.harnesses.iter_mut().for_each(|harness| drop(harness.stop()));
}

/// Redis stays down for the node until an operator mends the password, so `/health/redis` names the reason.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_says_that_redis_does_not_accept_its_password() {
    let user = |redis: &Redis, rules: &[&str]| {
        redis.ask::<()>(redis::cmd("ACL").arg("SETUSER").arg("seatkeeper").arg(rules).take());
    };
    let redis = Redis::start();
    user(&redis, &["on", ">right", "~*", "&*", "+@all"]);
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("password");
    fs::write(&file, "right").expect("it is written");
    let url = redis.url().replace("redis://", "redis://seatkeeper@");
    let mut nodes = Nodes::over(&[]);
    tokio::task::block_in_place(|| nodes.add_in(&[(PASSWORD_FILE, file.clone())], &url));
    let stage = Stage { nodes, redis };
    stage.health("redis", "ok").await;
    user(&stage.redis, &["<right", ">wrong"]);
    stage.redis.ask::<u32>(redis::cmd("CLIENT").arg("KILL").arg("USER").arg("seatkeeper").take());
    let told = until("the reason", async || {
        let told = stage.health("redis", "down").await;
        let problem = told["problems"][0].as_str().map(str::to_owned);
        problem
            .filter(|problem| problem.starts_with("a server does not accept this node: "))
            .ok_or(told.to_string())
    });
    assert!(told.await.contains("uthentication failed"));
    fs::write(&file, "wrong").expect("it is written");
    stage.is_back("redis", "redis_up").await;
    drop(stage.nodes.close());
}
