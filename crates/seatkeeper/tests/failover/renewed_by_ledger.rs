//! During a fallback, nodes renew devices by the ledger alone. An older end, decided by Redis, must not come on record
//! afterwards: the device was renewed meanwhile.

use std::time::{Duration, Instant};

use seatkeeper_ledger::buckets::BucketMode;
use seatkeeper_testbed::postgres::Postgres;
use seatkeeper_testbed::proxy::{Network, Proxy};
use seatkeeper_testbed::redis::Redis;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

use super::support::{Nodes, SERVED_WAIT_MAX, answered, renewed, seat};
use crate::harness::{Answer, Client};
use crate::support::books::opened;
use crate::until::within;

const DEVICES: &str = "/api/v1/devices/sessions";

/// Licenses are admitted without a commit.
const JOURNAL: &[(&str, &str)] = &[("LICENSES_DURABILITY", "journal")];

const WAIT_MAX: Duration = SERVED_WAIT_MAX;

/// The time after which an attempt at a fallback is given up: [`FALLBACK_MAX`] leaves time for several
/// attempts.
const STEP_MAX: Duration = Duration::from_secs(60);

/// Time limit for a fallback, in any number of attempts.
const FALLBACK_MAX: Duration = Duration::from_secs(300);

/// Counts the rebuilders waiting for the table of bucket locks.
const WAITING: &str =
    "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'bucket_locks'::regclass";

/// An operator with a lock on a table.
struct Lock(PgConnection);

impl Lock {
    async fn take(server: &Postgres, lock: &str) -> Self {
        let mut operator = PgConnection::connect(&server.url("postgres")).await.expect("a connection");
        let lock = format!("BEGIN; LOCK TABLE {lock}");
        operator.execute(AssertSqlSafe(lock)).await.expect("the lock");
        Self(operator)
    }

    async fn release(mut self) {
        self.0.execute("ROLLBACK").await.expect("the end of the lock");
    }
}

async fn beat(client: &Client, screen: &Value) -> Answer {
    client.post(&format!("{DEVICES}/heartbeat"), json!({ "session_id": screen })).await
}

async fn modes(nodes: &Nodes) -> Vec<BucketMode> {
    let ledger = opened(nodes.ledger()).await;
    ledger.buckets().await.expect("its buckets").iter().map(|row| row.mode).collect()
}

/// Polls `look` for at most [`STEP_MAX`], and returns whether `look` returned `true`.
async fn comes_true(mut look: impl AsyncFnMut() -> bool) -> bool {
    let started = Instant::now();
    while started.elapsed() < STEP_MAX {
        if look().await {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    false
}

/// Begins a fallback and brings Redis back meanwhile: Redis is silent until a rebuilder waits for the locks of its buckets, and
/// answers once the rebuilder has the locks.
async fn fall_back_while_redis_returns(nodes: &Nodes, server: &Postgres, to_redis: &Proxy) {
    let mut observer = PgConnection::connect(&server.url("postgres")).await.expect("a connection");
    let url = format!("{}/health/redis", nodes.harnesses[0].url());
    within(FALLBACK_MAX, "a fallback begins", async || {
        let lock = Lock::take(server, "bucket_locks IN ACCESS EXCLUSIVE MODE").await;
        to_redis.set(Network::Silent);
        let a_rebuilder_waits = comes_true(async || {
            let waiting: i64 = sqlx::query_scalar(WAITING).fetch_one(&mut observer).await.expect("locks");
            waiting > 0
        })
        .await;
        to_redis.set(Network::Well);
        let redis_is_reached =
            comes_true(async || reqwest::get(&url).await.expect("an answer").status() == 200).await;
        lock.release().await;
        if !a_rebuilder_waits || !redis_is_reached {
            return Err(format!(
                "a rebuilder waits: {a_rebuilder_waits}; Redis is reached: {redis_is_reached}"
            ));
        }
        // After the lock timeout the rebuilder has given up.
        for _ in 0..40 {
            if modes(nodes).await.contains(&BucketMode::Ledger) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Err("no bucket left Redis".to_owned())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_that_the_ledger_alone_has_renewed_ends_by_no_event_of_redis() {
    let redis = Redis::start();
    let to_redis = Proxy::start(([127, 0, 0, 1], redis.port()).into(), 0).await;
    let server = tokio::task::block_in_place(Postgres::start);
    let mut nodes = Nodes::on_with(server.url("postgres"), JOURNAL);
    let behind_proxy = format!("redis://{}", to_redis.address());
    tokio::task::block_in_place(|| (0..2).for_each(|_| nodes.add(&behind_proxy)));
    let clients = nodes.clients();
    let license = nodes.harnesses[0].license(2).await;
    seat(&clients[0], &license, "carl").await;
    let tv = json!({ "device_id": "tv", "device_type": "tv", "device_name": "tv" });
    let tv = clients[0].post(DEVICES, tv).await.expect(201)["session_id"].clone();

    // Redis ends the screen and admits ann. Neither event gets on record.
    let no_records = Lock::take(&server, "audit_log IN SHARE MODE").await;
    let ann = seat(&clients[0], &license, "ann").await;
    clients[0].delete(&format!("{DEVICES}/{}", tv.as_str().expect("an id"))).await.expect(503);
    fall_back_while_redis_returns(&nodes, &server, &to_redis).await;
    within(WAIT_MAX, "the screen is renewed by the ledger", async || {
        let answer = beat(&clients[1], &tv).await;
        if answer.status == 204 { Ok(()) } else { Err(answer.status.to_string()) }
    })
    .await;
    no_records.release().await;

    within(WAIT_MAX, "Redis serves again", async || {
        let away = modes(&nodes).await.iter().filter(|mode| **mode != BucketMode::Registry).count();
        if away == 0 { Ok(()) } else { Err(format!("{away} buckets are elsewhere")) }
    })
    .await;
    renewed(&clients[0], &ann).await;
    answered(async || beat(&clients[0], &tv).await).await.expect(204);
    drop(nodes.close());
}
