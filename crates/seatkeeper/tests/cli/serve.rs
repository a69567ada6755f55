//! The server and its commands: `serve` and `migrate`.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use seatkeeper_testbed::authority::Authority;
use seatkeeper_testbed::postgres::{self, Postgres};
use sqlx::{Connection as _, PgConnection};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::harness::{Harness, command, eventually, run, run_with};

/// Time limit for a start or a stop, on a machine that is busy with other tests.
const DEADLINE: Duration = Duration::from_secs(60);

#[test]
fn a_server_that_is_not_there_is_named() {
    let output = run(&["license", "list", "--server", "http://127.0.0.1:1", "--token", "x"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stderr.starts_with("seatkeeper: no answer from http://127.0.0.1:1/"), "{}", output.stderr);
}

#[tokio::test]
async fn a_server_that_is_asked_to_stop_ends_with_0_and_its_address_is_free() {
    let mut harness = Harness::open();
    let license = harness.license(1).await;
    let seat = harness.client("ann").acquire(&license["license_key"], "m1").await.expect(201);
    let (status, log) = harness.stop();
    assert_eq!(status.code(), Some(0), "{log}");
    harness.start();
    harness.client("ann").heartbeat(&seat["session_id"]).await.expect(200);
}

#[tokio::test]
async fn a_hangup_stops_no_server() {
    let harness = Harness::open();
    let pid = Pid::from_raw(harness.pid().cast_signed()).unwrap();
    kill_process(pid, Signal::HUP).unwrap();
    eventually("the signal is in the log", || {
        let log = harness.log_so_far();
        if log.contains("SIGHUP is ignored") { Ok(()) } else { Err(log) }
    });
    harness.license(1).await;
}

/// A server stopped during the wait for tables has not started yet, and leaves nothing waiting behind.
#[tokio::test]
async fn a_server_that_waits_for_tables_ends_with_0_when_it_is_asked_to_stop() {
    let (database, dir) = (postgres::database(), tempfile::tempdir().unwrap());
    let variables = [("SEATKEEPER_LEDGER_URL".to_owned(), database.url())];
    assert!(run_with(&variables, &["migrate"]).status.success());
    let mut other = PgConnection::connect(&database.url()).await.unwrap();
    sqlx::raw_sql("BEGIN; LOCK TABLE _sqlx_migrations").execute(&mut other).await.unwrap();
    let mut server = tokio::process::Command::from(command(&variables));
    server.args(["serve", "--listen", "127.0.0.1:0", "--data-dir", dir.path().to_str().unwrap()]);
    let mut server = server.stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut log = BufReader::new(server.stderr.take().unwrap()).lines();
    let ended = tokio::time::timeout(DEADLINE, async {
        while !log.next_line().await.unwrap().unwrap().contains("a migration waits for tables in use") {}
        kill_process(Pid::from_raw(server.id().unwrap().cast_signed()).unwrap(), Signal::TERM).unwrap();
        while log.next_line().await.unwrap().is_some() {}
        server.wait().await.unwrap()
    });
    assert_eq!(ended.await.expect("the server waits, and stops").code(), Some(0));
}

/// The other nodes would count a node without a farewell as live, and take nothing over from it.
#[tokio::test]
async fn a_node_that_is_stopped_before_its_buckets_are_served_leaves_the_nodes_on_record() {
    let (database, nobody) = (postgres::database(), std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let redis = format!("redis://{}", nobody.local_addr().unwrap());
    drop(nobody);
    let variables = [("SEATKEEPER_LEDGER_URL", database.url()), ("SEATKEEPER_REGISTRY_URL", redis)]
        .map(|(name, value)| (name.to_owned(), value));
    assert!(run_with(&variables, &["migrate"]).status.success());
    let mut observer = PgConnection::connect(&database.url()).await.unwrap();
    let mut server = tokio::process::Command::from(command(&variables));
    let mut server = server.args(["serve", "--listen", "127.0.0.1:0"]).kill_on_drop(true).spawn().unwrap();
    let ended = tokio::time::timeout(DEADLINE, async {
        while nodes_on_record(&mut observer).await == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        kill_process(Pid::from_raw(server.id().unwrap().cast_signed()).unwrap(), Signal::TERM).unwrap();
        server.wait().await.unwrap()
    });
    assert_eq!(ended.await.expect("the node starts, and stops").code(), Some(0));
    assert_eq!(nodes_on_record(&mut observer).await, 0);
}

async fn nodes_on_record(ledger: &mut PgConnection) -> i64 {
    sqlx::query_scalar("SELECT COUNT(*) FROM nodes").fetch_one(ledger).await.unwrap()
}

#[test]
fn two_servers_do_not_share_a_data_directory() {
    let harness = Harness::open();
    let second =
        run(&["serve", "--listen", "127.0.0.1:0", "--data-dir", harness.data_dir().to_str().unwrap()]);
    assert_eq!(second.status.code(), Some(1));
    assert!(second.stderr.contains("another process uses the data directory"), "{}", second.stderr);
}

#[tokio::test]
async fn a_node_that_has_its_token_key_to_itself_warns() {
    let database = postgres::database();
    let url = database.url();
    let shared = [("REGISTRY_URL", &*url), ("LEDGER_URL", &*url)];
    let secret = [("AUTH_ALGORITHM", "HS256"), ("AUTH_SECRET", "a secret that all nodes of a test know")];
    for (settings, warns) in [(shared.to_vec(), true), ([shared, secret].concat(), false), (vec![], false)] {
        let mut node = Harness::open_with(&settings);
        let (_, log) = node.stop();
        assert_eq!(log.contains("set auth.key_file to the same key"), warns, "{settings:?}: {log}");
    }
}

#[test]
fn migrate_makes_the_tables_and_may_be_repeated() {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let output = run(&["migrate", "--data-dir", dir.path().to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{}", output.stderr);
        assert!(output.stdout.contains("is at version"), "{}", output.stdout);
    }
}

#[test]
fn a_ledger_must_prove_itself_if_the_url_asks_for_a_proof() {
    let (authority, other) = (Authority::new(), Authority::new());
    let server = Postgres::start_with_certificate(&authority);
    let url = |trusted: &Authority| {
        let root = trusted.path("ca.pem");
        format!("{}?sslmode=verify-full&sslrootcert={}", server.url("postgres"), root.display())
    };
    let migrated = |url: String| run_with(&[("SEATKEEPER_LEDGER_URL".to_owned(), url)], &["migrate"]);
    let refused = migrated(url(&other));
    assert_eq!(refused.status.code(), Some(1));
    for part in [&server.port().to_string(), "invalid peer certificate", "sslrootcert"] {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
    let output = migrated(url(&authority));
    assert_eq!(output.status.code(), Some(0), "{}", output.stderr);
}
