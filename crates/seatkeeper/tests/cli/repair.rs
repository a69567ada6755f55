//! `seatkeeper repair`, without servers.

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};

use crate::harness::run;

#[tokio::test]
async fn usage_is_held_in_a_copy_of_the_ledger_until_the_command_confirms() {
    let dir = tempfile::tempdir().unwrap();
    let repair = |more: &[&str]| {
        let output = run(&[&["repair", "usage", "--data-dir", dir.path().to_str().unwrap()], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", output.stderr);
        output.stdout
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
