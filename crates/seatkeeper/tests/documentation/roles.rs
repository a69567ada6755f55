//! Nodes that may not change tables, with exactly the rights that the page on operations gives them.

use std::time::{Duration, Instant};

use seatkeeper_testbed::postgres::Postgres;
use seatkeeper_testbed::redis::{Memory, Redis};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tempfile::tempdir;
use uuid::Uuid;

use super::{blocks, page};
use crate::harness::sink::{Do, Sink};
use crate::harness::{Answer, Client, Harness, Output, run, run_with};

const DEVICES: &str = "/api/v1/devices/sessions";
const CAPACITIES: &str = "/api/v1/capacities/sessions";

/// The jobs of a node with a sink and a limited history.
const JOBS: [&str; 5] = ["session_expiry", "usage_emission", "usage_delivery", "retention", "housekeeping"];

/// Longer than the minute for which `retention` and `housekeeping` watch the clock, on a busy machine.
const JOBS_WAIT_MAX: Duration = Duration::from_secs(180);

/// Longer than a fallback to PostgreSQL takes.
const SERVED_WAIT_MAX: Duration = Duration::from_secs(60);

const PAUSE: Duration = Duration::from_millis(50);

/// The text of PostgreSQL's errors about missing rights.
const DENIED: &str = "permission denied";

/// The SQL of the page.
struct Rights {
    /// The roles and the database, by a superuser.
    roles: String,
    /// The rights on tables that do not exist yet, by the owner.
    future: String,
    /// The rights on existing tables, by the owner.
    existing: String,
}

impl Rights {
    fn from_page() -> Self {
        let page = page("docs/operations.md");
        let (_, section) = page.split_once("\n### Nodes that may not change tables\n").expect("the section");
        let section = section.split("\n## ").next().expect("a section");
        let [roles, future, existing] = blocks(section, "sql").try_into().expect("three blocks");
        Self { roles, future, existing }
    }
}

/// A PostgreSQL with the roles and the database of the page.
struct Server {
    postgres: Postgres,
    rights: Rights,
}

impl Server {
    async fn start() -> Self {
        let server = Self { postgres: Postgres::start(), rights: Rights::from_page() };
        execute(&server.postgres.url("postgres"), &server.rights.roles).await;
        server
    }

    fn url(&self, login: &str) -> String {
        self.postgres.url("seatkeeper").replacen("seatkeeper@", &format!("{login}@"), 1)
    }

    fn owner(&self) -> String {
        self.url("seatkeeper_owner:change-me")
    }

    fn node(&self) -> String {
        self.url("seatkeeper_node:change-me-too")
    }

    /// Runs `seatkeeper migrate` as the owner.
    fn migrate(&self) {
        let migrated = migrate(self.owner());
        assert!(migrated.status.success(), "{}{}", migrated.stdout, migrated.stderr);
        assert!(migrated.stdout.contains("the registry in"), "{}", migrated.stdout);
    }

    /// Starts a node by the role of nodes.
    fn start_node(&self, registry: &str, sink: &Sink) -> Harness {
        Harness::open_with(&[
            ("REGISTRY_URL", registry),
            ("LEDGER_URL", &self.node()),
            ("AUTH_ALGORITHM", "HS256"),
            ("AUTH_SECRET", "a secret that all nodes of a test know"),
            ("DEVICES_DURABILITY", "ledger"),
            ("LEDGER_RETENTION_DAYS", "1"),
            ("USAGE_SINK_URL", &sink.url),
            ("USAGE_EMISSION_INTERVAL_SECONDS", "1"),
        ])
    }

    /// Starts a node that must not start, and returns the output.
    fn refused_node(&self) -> Output {
        let dir = tempdir().expect("a directory");
        let dir = dir.path().to_str().expect("a path in Unicode");
        let node = self.node();
        let output = run(&["serve", "--listen", "127.0.0.1:0", "--data-dir", dir, "--ledger", &node]);
        assert_eq!(output.status.code(), Some(1), "{}{}", output.stdout, output.stderr);
        output
    }
}

/// Runs `seatkeeper migrate` by the role of a URL.
fn migrate(url: String) -> Output {
    run_with(&[("SEATKEEPER_LEDGER_URL".to_owned(), url)], &["migrate"])
}

/// Runs the statements one by one: a database is created outside of a transaction.
async fn execute(url: &str, statements: &str) {
    let mut connection = PgConnection::connect(url).await.expect("a connection");
    for statement in statements.split(";\n").filter(|statement| !statement.trim().is_empty()) {
        let run = sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut connection).await;
        run.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

/// Checks that the role of nodes may not change tables.
async fn may_not_change_tables(url: &str) {
    let mut connection = PgConnection::connect(url).await.expect("a connection");
    for statement in [
        "CREATE TABLE public.mine (id INT)",
        "CREATE TABLE registry.mine (id INT)",
        "CREATE SCHEMA mine",
        "TRUNCATE audit_log",
        "ALTER TABLE registry.pools ADD COLUMN mine INT",
    ] {
        let error = sqlx::raw_sql(statement).execute(&mut connection).await.expect_err(statement).to_string();
        assert!(error.contains(DENIED) || error.contains("must be owner"), "{statement}: {error}");
    }
}

/// Retries until the answer is no 503.
async fn answered(ask: impl AsyncFn() -> Answer) -> Answer {
    let started = Instant::now();
    loop {
        let answer = ask().await;
        if answer.status != 503 {
            return answer;
        }
        assert!(started.elapsed() < SERVED_WAIT_MAX, "not served: {:#}", answer.body);
        tokio::time::sleep(PAUSE).await;
    }
}

/// Takes, renews and gives back a seat of a license.
async fn use_license(client: &Client, key: &Value) {
    let seat = answered(async || client.acquire(key, "passing").await).await.expect(201);
    client.heartbeat(&seat["session_id"]).await.expect(200);
    client.release(&seat["session_id"]).await.expect(204);
}

/// Takes, renews and gives back a screen.
async fn use_device(client: &Client) {
    let ask = json!({ "device_id": "tv", "device_type": "tv" });
    let screen = answered(async || client.post(DEVICES, ask.clone()).await).await.expect(201);
    let named = json!({ "session_id": screen["session_id"] });
    client.post(&format!("{DEVICES}/heartbeat"), named.clone()).await.expect(204);
    let session = screen["session_id"].as_str().expect("an id");
    client.delete(&format!("{DEVICES}/{session}")).await.expect(204);
}

/// Takes a capacity, which is metered from now on.
async fn take_capacity(node: &Harness) {
    let tenant = Uuid::new_v4();
    let service = node.client_with(node.token_of(&tenant.to_string(), "meter", "service"));
    let ask = json!({
        "userObjectId": Uuid::new_v4(), "tenantObjectId": tenant, "capacityId": Uuid::new_v4(), "sessionKind": 1,
    });
    service.put(CAPACITIES, ask).await.expect(201);
}

/// Waits until each job has a run that succeeded, at either node, and checks that none failed.
async fn jobs_succeed(node: &Harness) {
    let (admin, started) = (node.admin(), Instant::now());
    for job in JOBS {
        let path = format!("/api/v1/admin/jobs/{job}");
        let asked = admin.post(&format!("{path}/run"), json!({})).await;
        // 429: an emission took place a moment ago.
        assert!([202, 429].contains(&asked.status), "{job}: {:#}", asked.body);
        loop {
            let runs = admin.get(&format!("{path}/runs")).await.expect(200);
            let items = runs["items"].as_array().expect("runs");
            let outcomes: Vec<_> = items.iter().map(|run| &run["outcome"]).collect();
            assert!(!outcomes.contains(&&json!("failed")), "{job}: {runs:#}");
            if outcomes.contains(&&json!("succeeded")) {
                break;
            }
            assert!(started.elapsed() < JOBS_WAIT_MAX, "{job}: {runs:#}");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Stops a node, proves the record by the role of nodes, and checks that nothing was denied.
fn close(mut node: Harness) {
    let (status, log) = node.stop();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(!log.contains(DENIED), "{log}");
    node.prove();
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_over_redis_need_no_right_on_tables_and_fall_back_to_postgres() {
    let (server, mut redis, sink) =
        (Server::start().await, Redis::start(), Sink::open(|_| Do::Take(204)).await);
    execute(&server.owner(), &server.rights.future).await;
    server.migrate();
    may_not_change_tables(&server.node()).await;
    let node = server.start_node(&redis.url(), &sink);
    let (license, ann) = (node.license(2).await, node.client("ann"));
    let key = &license["license_key"];
    let stays = ann.acquire(key, "stays").await.expect(201)["session_id"].clone();
    use_license(&ann, key).await;
    use_device(&ann).await;
    take_capacity(&node).await;

    redis.kill();
    use_license(&ann, key).await;
    answered(async || ann.heartbeat(&stays).await).await.expect(200);
    take_capacity(&node).await;
    redis.start_again(Memory::Lost);
    use_device(&ann).await;
    answered(async || ann.heartbeat(&stays).await).await.expect(200);

    jobs_succeed(&node).await;
    assert!(!sink.taken().is_empty(), "usage is delivered");
    // A start over used tables needs no right either, also as an operator's command.
    let again = migrate(server.node());
    assert!(again.status.success(), "{}", again.stderr);
    close(node);
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_over_postgres_alone_need_no_right_on_tables_that_were_there_before() {
    let (server, sink) = (Server::start().await, Sink::open(|_| Do::Take(204)).await);
    let no_tables = server.refused_node().stderr;
    assert!(no_tables.contains(DENIED) && no_tables.contains("run `seatkeeper migrate`"), "{no_tables}");
    server.migrate();
    let no_rights = server.refused_node().stderr;
    assert!(no_rights.contains(DENIED) && no_rights.contains("docs/operations.md"), "{no_rights}");

    execute(&server.owner(), &server.rights.future).await;
    execute(&server.owner(), &server.rights.existing).await;
    may_not_change_tables(&server.node()).await;
    let nodes = [server.start_node(&server.node(), &sink), server.start_node(&server.node(), &sink)];
    let license = nodes[0].license(2).await;
    let (ann, other) = (nodes[0].client("ann"), nodes[1].client("ann"));
    let key = &license["license_key"];
    let stays = ann.acquire(key, "stays").await.expect(201)["session_id"].clone();
    for (node, client) in nodes.iter().zip([&ann, &other]) {
        use_license(client, key).await;
        use_device(client).await;
        take_capacity(node).await;
        client.heartbeat(&stays).await.expect(200);
    }
    jobs_succeed(&nodes[1]).await;
    nodes.into_iter().for_each(close);
}
