//! `seatkeeper token`.

use crate::harness::{Harness, run};

#[test]
fn a_token_without_a_key_says_how_one_comes_to_be() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(&["token", "--user", "ann", "--data-dir", dir.path().to_str().unwrap()]);
    assert_eq!((output.status.code(), output.stdout.as_str()), (Some(1), ""));
    assert!(output.stderr.contains("seatkeeper serve"), "{}", output.stderr);
}

#[test]
fn a_token_that_every_server_refuses_is_not_signed() {
    let long = "x".repeat(256);
    for (flag, wrong) in [
        ("--user", ""),
        ("--user", "a\nb"),
        ("--user", &long),
        ("--tenant", ""),
        ("--scope", "admin admn"),
        ("--ttl", "0s"),
        ("--ttl", "3651d"),
    ] {
        let output = run(&["token", "--user", "ann", flag, wrong]);
        assert_eq!((output.status.code(), output.stdout.as_str()), (Some(2), ""), "{flag} {wrong:?}");
    }
    let output = run(&["token", "--user", ""]);
    assert!(output.stderr.contains("1 to 255 characters"), "{}", output.stderr);
}

#[tokio::test]
async fn a_token_of_the_command_is_accepted_and_has_no_scope_unasked() {
    let harness = Harness::open();
    let license = harness.license(1).await;
    harness.client("ann").acquire(&license["license_key"], "m1").await.expect(201);
    let answer = harness.client("ann").get("/api/v1/admin/licenses").await;
    assert_eq!(answer.status, 403, "without a scope it is no admin's: {}", answer.body);
}
