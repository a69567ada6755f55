//! `seatkeeper jobs`.

use serde_json::{Value, json};

use crate::harness::{Harness, eventually};

/// Reads the records of ends from the audit log alone, because reading a session ends it if it has expired.
fn ends(harness: &Harness) -> Vec<Value> {
    let listed = harness.command(&["audit", "list", "--action", "ended", "--json"]).stdout;
    let mut listed: Value = serde_json::from_str(&listed).unwrap();
    serde_json::from_value(listed["items"].take()).unwrap()
}

#[tokio::test]
async fn a_silent_session_is_put_on_record_by_a_job_that_is_run_by_hand() {
    let harness =
        Harness::open_with(&[("REGISTRY_SWEEP_INTERVAL_MILLISECONDS", "0"), ("LICENSES_TTL_SECONDS", "2")]);
    let license = harness.license(1).await;
    let seat = harness.client("ann").acquire(&license["license_key"], "m1").await.expect(201);
    let ended = eventually("the session is on record as expired", || {
        // Only the job can end the session: the sweeper is off, and the job's next scheduled run is ten
        // minutes away.
        let run = harness.command(&["jobs", "run", "session_expiry"]);
        assert_eq!((run.status.code(), run.stdout.as_str()), (Some(0), "session_expiry is due now\n"));
        ends(&harness).pop().ok_or_else(|| "no end on record".to_owned())
    });
    assert_eq!((&ended["session_id"], &ended["reason"]), (&seat["session_id"], &json!("expired")));

    let table = harness.command(&["jobs", "list"]).stdout;
    let header = table.lines().next().unwrap().split_whitespace().collect::<Vec<_>>();
    assert_eq!(header[..4], ["JOB", "STATE", "EVERY", "DUE"]);
    assert!(table.contains("session_expiry") && table.contains("600 s"), "{table}");
    let runs = harness.command(&["jobs", "runs", "session_expiry", "--limit", "1"]).stdout;
    assert!(runs.lines().next().unwrap().starts_with("RUN") && runs.contains("and more"), "{runs}");
    // More runs than a fast machine can request before the session expires.
    let runs = harness.command(&["jobs", "runs", "session_expiry", "--limit", "100000", "--json"]).stdout;
    let runs: Value = serde_json::from_str(&runs).unwrap();
    let oldest = runs["items"].as_array().unwrap().last().unwrap();
    assert_eq!((&oldest["fencing_token"], &oldest["outcome"]), (&json!(1), &json!("succeeded")));
}

#[test]
fn a_job_that_there_is_not_is_a_wrong_argument_and_one_that_is_off_is_not_found() {
    let harness = Harness::open();
    let unknown = harness.command(&["jobs", "run", "nothing"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(unknown.stderr.contains("session_expiry"), "{}", unknown.stderr);
    let off = harness.command(&["jobs", "run", "retention"]);
    assert_eq!(off.status.code(), Some(1));
    assert!(off.stderr.contains("404: Job not found"), "{}", off.stderr);
}
