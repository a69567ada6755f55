//! History outlives a wrong clock: a job deletes old history by age, and the clock of PostgreSQL's host is ten years ahead for
//! a while.

use std::sync::Arc;
use std::time::Duration;

use seatkeeper_testbed::clock::Clock;
use seatkeeper_testbed::postgres::Postgres;
use seatkeeper_testbed::redis::Redis;
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};

use super::support::{Nodes, answered, released};
use super::trial::outage;
use crate::harness::Client;
use crate::until::within;

const DECADE: Duration = Duration::from_secs(10 * 365 * 86_400);

/// The job runs once the clock has been steady for a minute, on a busy machine.
const RUNS_WITHIN: Duration = Duration::from_secs(180);

/// A license, and an ended session of the license.
struct Past {
    license: Value,
    session: Value,
}

impl Past {
    async fn new(nodes: &Nodes) -> Self {
        let (license, client) = (nodes.harnesses[0].license(1).await, nodes.harnesses[0].client("ann"));
        let seat = answered(async || client.acquire(&license["license_key"], "m1").await).await.expect(201);
        let session = seat["session_id"].clone();
        released(&client, &session).await;
        Self { license, session }
    }

    /// Dates the records of the license two days back.
    async fn becomes_old(&self, database: &str) {
        let mut database = PgConnection::connect(database).await.expect("a connection");
        let license = self.license["license_id"].as_str().expect("an id");
        let forge = "ALTER TABLE audit_log DISABLE TRIGGER audit_log_is_append_only";
        sqlx::query(forge).execute(&mut database).await.expect("no trigger");
        sqlx::query("UPDATE audit_log SET at = at - INTERVAL '2 days' WHERE pool_id = $1")
            .bind(license)
            .execute(&mut database)
            .await
            .expect("older records");
    }

    /// Returns the status of the answer to a question for the session.
    async fn status(&self, admin: &Client) -> u16 {
        let session = self.session.as_str().expect("an id");
        answered(async || admin.get(&format!("/api/v1/admin/sessions/{session}")).await).await.status
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_shows_another_decade_makes_no_history_old() {
    let (redis, clock) = (Redis::start(), Arc::new(Clock::new()));
    let postgres = tokio::task::block_in_place(|| Postgres::start_by(&clock));
    let database = postgres.url("postgres");
    let nodes = tokio::task::block_in_place(|| {
        let mut nodes = Nodes::on_with(database.clone(), &[("LEDGER_RETENTION_DAYS", "1")]);
        nodes.add(&redis.url());
        nodes
    });
    let admin = nodes.harnesses[0].admin();
    let (old, young) = (Past::new(&nodes).await, Past::new(&nodes).await);
    old.becomes_old(&database).await;

    clock.advance(DECADE);
    let run = async || admin.post("/api/v1/admin/jobs/retention/run", json!({})).await;
    answered(run).await.expect(202);
    tokio::time::sleep(outage()).await;
    clock.set_back(DECADE);
    within(RUNS_WITHIN, "the old session is deleted", async || {
        tokio::time::sleep(Duration::from_secs(1)).await;
        match old.status(&admin).await {
            404 => Ok(()),
            status => Err(format!("its status is {status}")),
        }
    })
    .await;
    assert_eq!(young.status(&admin).await, 200, "young history is deleted");
    drop(nodes.close());
}
