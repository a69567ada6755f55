//! `seatkeeper repair`, without servers.

use std::fs;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};

use crate::harness::run;

#[test]
fn a_repair_without_a_ledger_fails_and_makes_none() {
    let dir = tempfile::tempdir().unwrap();
    let (empty, missing) = (dir.path().join("empty"), dir.path().join("missing"));
    fs::create_dir(&empty).unwrap();
    for repair in [
        &["clock"][..],
        &["clock", "--apply"],
        &["nodes"],
        &["nodes", "--apply"],
        &["usage"],
        &["usage", "--apply"],
    ] {
        for place in [&empty, &missing] {
            let output = run(&[&["repair"], repair, &["--data-dir", place.to_str().unwrap()]].concat());
            assert_eq!(output.status.code(), Some(1), "{repair:?}: {}", output.stdout);
            assert!(output.stderr.contains("there is no ledger in it"), "{repair:?}: {}", output.stderr);
        }
        assert_eq!(fs::read_dir(&empty).unwrap().count(), 0, "{repair:?}");
        assert!(!missing.exists(), "{repair:?}");
    }
}

#[test]
fn a_repair_says_which_ledger_it_looks_at() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().to_str().unwrap();
    assert!(run(&["migrate", "--data-dir", place]).status.success());
    for repair in ["clock", "nodes", "usage"] {
        let output = run(&["repair", repair, "--data-dir", place]);
        assert_eq!(output.status.code(), Some(0), "{}", output.stderr);
        assert!(output.stdout.starts_with(&format!("ledger {place}\n")), "{}", output.stdout);
    }
}

#[tokio::test]
async fn usage_is_held_in_a_copy_of_the_ledger_until_the_command_confirms() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().to_str().unwrap();
    assert!(run(&["migrate", "--data-dir", place]).status.success());
    let repair = |more: &[&str]| {
        let output = run(&[&["repair", "usage", "--data-dir", place], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", output.stderr);
        let told = output.stdout.strip_prefix(&format!("ledger {place}\n"));
        told.expect("the ledger that is looked at").to_owned()
    };
    assert!(repair(&[]).starts_with("Usage is recorded"));
    let options = SqliteConnectOptions::new().filename(dir.path().join("ledger.db"));
    let mut ledger = options.connect().await.unwrap();
    for statement in [
        "INSERT INTO usage_ledger (id, identity) VALUES (1, 'elsewhere')",
        "INSERT INTO usage_windows (starts_at, ends_at, records, micro_units)
         VALUES ('2030-01-31T00:00:00.000+00:00', '2030-01-31T00:01:00.000+00:00', 1, 23)",
    ] {
        sqlx::query(statement).execute(&mut ledger).await.unwrap();
    }
    ledger.close().await.unwrap();
    let held = repair(&[]);
    for part in ["Usage is held", "2030-01-31T00:01:00", "Nothing was changed"] {
        assert!(held.contains(part), "{held}");
    }
    assert_eq!(repair(&[]), held);
    assert!(repair(&["--apply"]).contains("Usage is recorded from there on"));
    assert!(repair(&[]).starts_with("Usage is recorded"));
}
