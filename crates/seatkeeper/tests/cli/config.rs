//! `seatkeeper config`, and settings that are refused.

use std::fs;

use crate::harness::{Harness, run, run_with};
use crate::run_unread;

#[test]
fn config_without_anything_prints_every_setting_with_its_default() {
    let output = run(&["config"]);
    assert_eq!(output.status.code(), Some(0));
    for part in [
        "[server]\nlisten = \"127.0.0.1:8080\"\n",
        "[licenses]\nttl_seconds = 360\n",
        "[registry]\nurl = \"memory\"\n",
    ] {
        assert!(output.stdout.contains(part), "{part}: {}", output.stdout);
    }
}

#[test]
fn config_masks_secrets() {
    let secret = "a-secret-of-thirty-two-characters";
    let variables = [
        ("SEATKEEPER_AUTH_ALGORITHM".to_owned(), "HS256".to_owned()),
        ("SEATKEEPER_AUTH_SECRET".to_owned(), secret.to_owned()),
    ];
    let output = run_with(&variables, &["config"]);
    assert_eq!(output.status.code(), Some(0), "{}", output.stderr);
    assert!(output.stdout.contains("secret = \"********\""), "{}", output.stdout);
    assert!(!output.stdout.contains(secret));
}

#[test]
fn what_config_prints_is_a_file_that_config_reads() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("seatkeeper.toml");
    let first = run(&["config", "--listen", "127.0.0.1:9000"]).stdout;
    fs::write(&path, &first).unwrap();
    let second = run(&["config", "--config", path.to_str().unwrap()]);
    assert_eq!(second.stdout, first, "{}", second.stderr);
}

#[test]
fn an_unknown_setting_is_named_and_exits_with_2() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("seatkeeper.toml");
    fs::write(&path, "[licenses]\nttl = 3\n").unwrap();
    let of_file = run(&["config", "--config", path.to_str().unwrap()]);
    assert_eq!((of_file.status.code(), of_file.stdout.as_str()), (Some(2), ""));
    assert!(
        of_file.stderr.contains("`ttl`") && of_file.stderr.contains("seatkeeper.toml"),
        "{}",
        of_file.stderr
    );

    let variables = [("SEATKEEPER_LICENSES_TTL".to_owned(), "3".to_owned())];
    let of_variable = run_with(&variables, &["serve"]);
    assert_eq!(of_variable.status.code(), Some(2));
    assert!(of_variable.stderr.contains("SEATKEEPER_LICENSES_TTL"), "{}", of_variable.stderr);
}

#[test]
fn a_server_beside_a_kubernetes_service_of_its_name_starts_and_says_what_it_ignores() {
    let mut harness = Harness::open_with(&[
        ("SERVICE_HOST", "10.0.171.239"),
        ("PORT", "tcp://10.0.171.239:8080"),
        ("PORT_8080_TCP_ADDR", "10.0.171.239"),
    ]);
    let log = harness.stop().1;
    let warning = log.lines().find(|line| line.contains("Kubernetes")).expect("a warning");
    for name in ["SEATKEEPER_SERVICE_HOST", "SEATKEEPER_PORT,", "SEATKEEPER_PORT_8080_TCP_ADDR"] {
        assert!(warning.contains(name), "{name}: {warning}");
    }
    assert!(warning.contains("\"level\":\"WARN\"") && warning.contains("enableServiceLinks"), "{warning}");
}

#[cfg(not(feature = "otlp"))]
#[test]
fn a_program_without_traces_refuses_a_collector() {
    let dir = tempfile::tempdir().unwrap();
    let output = run_with(
        &[
            ("SEATKEEPER_LEDGER_DATA_DIR".to_owned(), dir.path().to_str().unwrap().to_owned()),
            ("SEATKEEPER_TRACING_OTLP_ENDPOINT".to_owned(), "http://127.0.0.1:4318".to_owned()),
        ],
        &["serve"],
    );
    assert_eq!(output.status.code(), Some(2), "{}", output.stderr);
    assert!(output.stderr.contains("--features otlp"), "{}", output.stderr);
}

#[test]
fn config_check_says_all_that_is_wrong_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("seatkeeper.toml");
    let check = |text: &str, variables: &[(&str, &str)]| {
        fs::write(&path, text).unwrap();
        let variables: Vec<_> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let output = run_with(&variables, &["config", "check", "--config", path.to_str().unwrap()]);
        assert_eq!(output.stderr, "");
        (output.status.code().unwrap(), output.stdout)
    };
    assert_eq!(check("", &[]), (0, "the settings are right\n".into()));
    let (status, told) = check(
        "[licenses]\nttl = 3\n",
        &[("SEATKEEPER_LOG_LEVLE", "info"), ("SEATKEEPER_LICENSES_SHOW_HOLDERS", "perhaps")],
    );
    assert_eq!((status, told.lines().count()), (1, 3), "{told}");
    for part in ["seatkeeper.toml", "`ttl`", "SEATKEEPER_LOG_LEVLE", "SEATKEEPER_LICENSES_SHOW_HOLDERS"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let empty = dir.path().join("empty");
    fs::write(&empty, "").unwrap();
    let empty = empty.to_str().unwrap();
    let (status, told) = check(
        &format!(
            "[auth]\nkey_file = \"{empty}\"\n[ledger]\ndata_dir = \"{empty}\"\n[licenses]\nttl_seconds = 1\ncache_seconds = 99\n\
             [registry]\nurl = \"rediss://a\"\npassword_file = \"/nowhere\"\ntls_ca_file = \"{empty}\"\n\
             [usage]\nbatch_records = 0\n"
        ),
        &[],
    );
    let keys = [
        "licenses.ttl_seconds",
        "licenses.cache_seconds",
        "usage.batch_records",
        "auth.key_file",
        "ledger.data_dir",
        "registry.password_file",
        "registry.tls_ca_file",
    ];
    assert_eq!((status, told.lines().count()), (1, keys.len()), "{told}");
    for (line, key) in told.lines().zip(keys) {
        assert!(line.contains(key), "{key}: {told}");
    }
    // A line of a settings file may contain a secret.
    let (status, told) = check("[auth]\nsecret = \"a secret\n", &[]);
    assert!(status == 1 && told.contains("line 2") && !told.contains("a secret"), "{told}");
}

#[test]
fn config_check_tells_its_verdict_also_without_a_reader() {
    assert_eq!(run_unread(&["config", "check"]), Some(0));
    assert_eq!(run_unread(&["config", "check", "--config", "/nowhere/seatkeeper.toml"]), Some(1));
}

#[test]
fn an_error_is_one_line_with_its_causes() {
    let output = run(&["config", "--config", "/nowhere/seatkeeper.toml"]);
    assert_eq!(
        output.stderr,
        "seatkeeper: cannot read the settings in /nowhere/seatkeeper.toml: No such file or directory (os error 2)\n"
    );
}
