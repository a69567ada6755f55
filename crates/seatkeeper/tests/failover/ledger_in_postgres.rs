//! A single node with sessions in its own memory and its ledger in PostgreSQL: no answer is lost when either
//! crashes.

use std::net::TcpListener;
use std::thread;

use seatkeeper_testbed::postgres::{self, Postgres, Stop};
use serde_json::json;

use super::support::answered;
use crate::harness::{Harness, run, run_with};

/// Starts a server on this database. Its sessions outlive the test.
fn house_on(url: &str) -> Harness {
    Harness::open_with(&[
        ("LEDGER_URL", url),
        ("LICENSES_TTL_SECONDS", "3600"),
        ("LEDGER_COMMIT_TIMEOUT_MILLISECONDS", "1000"),
    ])
}

#[tokio::test]
async fn what_was_answered_is_there_after_a_crash_and_can_be_proved() {
    let database = postgres::database();
    let mut harness = house_on(&database.url());
    let license = harness.license(2).await;
    let (ann, key) = (harness.client("ann"), &license["license_key"]);
    let stays = ann.acquire(key, "m1").await.expect(201);
    let gone = ann.acquire(key, "m2").await.expect(201);
    ann.release(&gone["session_id"]).await.expect(204);
    harness.kill();
    harness.start();

    let ann = harness.client("ann");
    ann.heartbeat(&stays["session_id"]).await.expect(200);
    let ended = ann.heartbeat(&gone["session_id"]).await.expect(410);
    assert_eq!(ended["reason"], "released");
    ann.acquire(key, "m3").await.expect(201);
    let full = ann.acquire(key, "m4").await.expect(403);
    assert_eq!(full["seats_total"], 2);
    let watching = json!({ "device_id": "tv", "device_type": "tv" });
    ann.post("/api/v1/devices/sessions", watching).await.expect(201);
    // A screen is recorded some time after its answer, and at the latest when the server stops.
    harness.stop();
    assert!(harness.prove().contains("4  none left its pool above its limit"));
}

#[tokio::test]
async fn a_server_outlives_a_ledger_that_crashes_and_comes_back() {
    let server = Postgres::start();
    let mut harness = house_on(&server.url("postgres"));
    let license = harness.license(1_000).await;
    let (ann, key) = (harness.client("ann"), &license["license_key"]);
    let mut seats = vec![ann.acquire(key, "m0").await.expect(201)];
    for round in 1..=5 {
        server.stop(Stop::Immediate);
        ann.heartbeat(&seats[0]["session_id"]).await.expect(200);
        ann.acquire(key, &format!("m{round}")).await.expect(503);
        server.start_again();
        let seat = answered(async || ann.acquire(key, &format!("m{round}")).await).await;
        assert!([200, 201].contains(&seat.status), "{:#}", seat.body);
        seats.push(seat.body);
    }
    for seat in &seats {
        ann.heartbeat(&seat["session_id"]).await.expect(200);
    }
    assert_eq!(seats[5]["seats_used"], 6);
    harness.stop();
    harness.prove();
}

#[test]
fn its_tables_are_made_by_migrate_and_its_log_is_proved_without_a_server() {
    let database = postgres::database();
    let url = database.url();
    let unmade = run(&["audit", "verify", "--ledger", &url]);
    assert_eq!(unmade.status.code(), Some(1), "{}", unmade.stdout);
    assert!(unmade.stderr.contains("version 0"), "{}", unmade.stderr);
    let made = run(&["migrate", "--ledger", &url]);
    assert!(made.status.success() && made.stdout.contains("is at version"), "{}{}", made.stdout, made.stderr);
    let proved = run(&["audit", "verify", "--ledger", &url]);
    assert!(proved.status.success(), "{}{}", proved.stdout, proved.stderr);
}

#[test]
fn its_password_is_shown_nowhere() {
    // A listener that hangs up at once. A server that is not up yet would be waited for.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || listener.incoming().for_each(drop));
    let url = format!("postgres://app:s3cret@{address}/seats");
    let variables = [("SEATKEEPER_LEDGER_URL".to_owned(), url)];
    let config = run_with(&variables, &["config"]);
    assert!(config.stdout.contains("url = \"********\""), "{}", config.stdout);
    let serve = run_with(&variables, &["migrate"]);
    assert_eq!(serve.status.code(), Some(1), "{}", serve.stdout);
    for output in [config, serve] {
        assert!(!format!("{output:?}").contains("s3cret"), "{output:?}");
    }
}
