//! `seatkeeper audit`.

use std::path::Path;

use serde_json::Value;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};

use crate::harness::{Harness, eventually, run};
use crate::run_unread;

#[tokio::test]
async fn the_audit_log_is_listed_and_proved_beside_a_running_server() {
    let harness = Harness::open();
    let license = harness.license(1).await;
    harness.client("ann").acquire(&license["license_key"], "m1").await.expect(201);
    harness.client("ann").acquire(&license["license_key"], "m2").await.expect(403);
    // A denial is answered before its commit.
    let denied = eventually("one denial is on record", || {
        let listed = harness.command(&["audit", "list", "--action", "denied", "--json"]).stdout;
        let listed: Value = serde_json::from_str(&listed).unwrap();
        if listed["items"].as_array().unwrap().len() == 1 { Ok(listed) } else { Err(listed.to_string()) }
    });
    assert_eq!(denied["items"][0]["reason"], "full");
    let table = harness.command(&["audit", "list"]).stdout;
    for part in ["license_created", "admitted", "denied", "user:ann", "full"] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let proof = harness.prove();
    assert!(proof.contains("none left its pool above its limit"), "{proof}");
}

/// Deletes a record, as somebody with something to hide would.
async fn tamper(ledger: &Path, statement: &'static str) {
    let options = SqliteConnectOptions::new().filename(ledger);
    let mut database = options.connect().await.unwrap();
    sqlx::query(statement).execute(&mut database).await.unwrap();
    database.close().await.unwrap();
}

#[tokio::test]
async fn a_record_that_was_taken_out_of_the_audit_log_is_found() {
    let mut harness = Harness::open();
    let license = harness.license(1).await;
    let ann = harness.client("ann");
    let seat = ann.acquire(&license["license_key"], "m1").await.expect(201);
    ann.release(&seat["session_id"]).await.expect(204);
    ann.acquire(&license["license_key"], "m2").await.expect(201);
    harness.stop();
    tamper(&harness.path("ledger.db"), "DELETE FROM audit_log WHERE action = 'ended'").await;

    let data_dir = harness.data_dir().to_str().unwrap();
    let output = run(&["audit", "verify", "--data-dir", data_dir]);
    assert_eq!(output.status.code(), Some(1));
    let pool = license["license_id"].as_str().unwrap();
    assert!(output.stdout.starts_with("BROKEN: "), "{}", output.stdout);
    assert!(output.stdout.contains(pool) && output.stdout.contains("session record 3"), "{}", output.stdout);
    let as_json = run(&["audit", "verify", "--data-dir", data_dir, "--json"]);
    let as_json: Value = serde_json::from_str(&as_json.stdout).unwrap();
    assert_eq!(as_json["proven"], false);

    for format in [&[][..], &["--json"]] {
        let unread = run_unread(&[&["audit", "verify", "--data-dir", data_dir], format].concat());
        assert_eq!(unread, Some(1), "the verdict of an output that nobody reads: {format:?}");
    }
    let regions = format!("1={data_dir}");
    assert_eq!(run_unread(&["audit", "verify", "--regions", &regions]), Some(1));
}
