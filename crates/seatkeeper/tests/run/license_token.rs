//! License tokens: runs and Rust programs that know a license key alone.

use std::process::Stdio;

use seatkeeper_client::{Client, Error, Finish, LicenseKey};
use serde_json::{Value, json};

use crate::harness::{Harness, command};
use crate::started::{live, recorded, until_live};

/// Builds a run without a data directory that could sign a token.
fn run(harness: &Harness, options: &[&str]) -> std::process::Command {
    let mut run = command(&[]);
    run.args(["run", "--license-token", "--server", harness.url(), "--data-dir"])
        .arg(harness.path("nothing"))
        .args(options)
        .stdin(Stdio::null());
    run
}

async fn open_license(harness: &Harness, key: &str) -> Value {
    harness.license_with(json!({ "license_key": key, "max_seats": 1, "clients": "key" })).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_run_with_keys_alone_holds_a_seat_of_each_license() {
    let harness = Harness::open();
    open_license(&harness, "OPEN-LICENSE-ONE").await;
    open_license(&harness, "OPEN-LICENSE-TWO").await;
    let done = harness.path("done");
    let wait = format!("while ! [ -e {} ]; do sleep 0.02; done", done.display());
    let licenses = ["--license", "OPEN-LICENSE-TWO", "--license", "OPEN-LICENSE-ONE"];
    let mut run = run(&harness, &licenses);
    let run = run.args(["--", "sh", "-c", &wait]).stderr(Stdio::piped()).spawn().unwrap();
    until_live(&harness, 2).await;
    for session in live(&harness).await {
        assert!(session["user"].as_str().is_some_and(|user| user.starts_with("machine:")), "{session}");
    }
    std::fs::write(&done, "").unwrap();
    let output = run.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("seat 1 of 1") && !said.contains("OPEN-LICENSE"), "{said}");
    until_live(&harness, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_key_that_is_not_good_is_refused_with_the_remedy() {
    let harness = Harness::open();
    open_license(&harness, "OPEN-LICENSE-ONE").await;
    harness.license_with(json!({ "license_key": "SHUT-LICENSE-ONE", "max_seats": 1 })).await;
    let cases: [&[&str]; 3] = [
        &["--license", "SHUT-LICENSE-ONE"],
        &["--license", "LICENSE-OF-NOBODY"],
        &["--license", "OPEN-LICENSE-ONE", "--tenant", "another"],
    ];
    for options in cases {
        let output = run(&harness, options).args(["--", "true"]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(77), "{options:?}: {said}");
        assert!(said.contains("license-not-found") && said.contains("--clients key"), "{said}");
        assert!(!said.contains(options[1]), "a key is shown: {said}");
    }
    let both = run(&harness, &["--license", "K", "--token", "t"]).args(["--", "true"]).output().unwrap();
    assert_eq!(both.status.code(), Some(2));
    assert_eq!(recorded(&harness, "admitted").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_rust_program_with_a_key_alone_holds_a_seat_and_gives_it_back() {
    let harness = Harness::open();
    open_license(&harness, "OPEN-LICENSE-ONE").await;
    let client = |key: LicenseKey| Client::builder(harness.url()).license_key(key).build().unwrap();
    let open = client("OPEN-LICENSE-ONE".into());
    let seat = open.license("OPEN-LICENSE-ONE").machine("laptop").acquire().await.unwrap();
    until_live(&harness, 1).await;
    assert_eq!(seat.release().await.unwrap(), Finish::GivenBack);
    until_live(&harness, 0).await;
    let strange = client(LicenseKey::new("OPEN-LICENSE-ONE").tenant("another"));
    let error = strange.license("OPEN-LICENSE-ONE").machine("laptop").acquire().await.unwrap_err();
    assert!(matches!(error, Error::Denied(_)) && error.code() == "license-not-found", "{error:?}");
}
