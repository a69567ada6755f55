//! Tests of the command line: arguments, output and exit codes.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a line that is missing fails the test")]

mod harness;

const TOPOLOGY: harness::Topology = harness::Topology::Embedded;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use harness::{Client, Harness, eventually, run, run_with};
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};

/// Returns the value in the line `name   value` of a table.
fn field(table: &str, name: &str) -> String {
    let line = table.lines().find_map(|line| line.trim().strip_prefix(name));
    line.unwrap_or_else(|| panic!("no line {name} in:\n{table}")).trim().to_owned()
}

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
fn an_error_is_one_line_with_its_causes() {
    let output = run(&["config", "--config", "/nowhere/seatkeeper.toml"]);
    assert_eq!(
        output.stderr,
        "seatkeeper: cannot read the settings in /nowhere/seatkeeper.toml: No such file or directory (os error 2)\n"
    );
}

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
    for (flag, wrong) in [("--user", ""), ("--user", "a\nb"), ("--user", &long), ("--tenant", "")] {
        let output = run(&["token", "--user", "ann", flag, wrong]);
        assert_eq!((output.status.code(), output.stdout.as_str()), (Some(2), ""), "{flag} {wrong:?}");
    }
    let output = run(&["token", "--user", ""]);
    assert!(output.stderr.contains("1 to 255 characters"), "{}", output.stderr);
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let output = run(&["license", "list", "--server", "http://127.0.0.1:1", "--token", "x"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stderr.starts_with("seatkeeper: no answer from http://127.0.0.1:1/"), "{}", output.stderr);
}

#[tokio::test]
async fn the_token_of_the_command_is_believed_until_its_time_is_over() {
    let harness = Harness::open();
    let license = harness.license(1).await;
    harness.client("ann").acquire(&license["license_key"], "m1").await.expect(201);
    let answer = harness.client("ann").get("/api/v1/admin/licenses").await;
    assert_eq!(answer.status, 403, "without a scope it is no admin's: {}", answer.body);
}

#[test]
fn a_license_from_its_creation_to_its_revocation() {
    let harness = Harness::open();
    let made = harness.command(&[
        "license",
        "create",
        "--seats",
        "3",
        "--key",
        "K-1",
        "--ttl-seconds",
        "2",
        "--clients",
        "key",
        "--grace-seconds",
        "3600",
    ]);
    assert_eq!(made.status.code(), Some(0), "{}", made.stderr);
    assert_eq!(field(&made.stdout, "key"), "K-1");
    assert_eq!(field(&made.stdout, "seats"), "0 of 3 in use");
    assert_eq!(field(&made.stdout, "clients"), "key");
    assert_eq!(field(&made.stdout, "grace seconds"), "3600");
    assert_eq!(field(&made.stdout, "reacquire"), "expired_only");
    let id = field(&made.stdout, "license id");

    let changed = harness.command(&[
        "license",
        "update",
        &id,
        "--seats",
        "5",
        "--contact",
        "ops",
        "--clients",
        "token",
        "--reacquire",
        "never",
    ]);
    assert_eq!(field(&changed.stdout, "clients"), "token");
    assert_eq!(field(&changed.stdout, "grace seconds"), "3600", "what was not said stays as it is");
    assert_eq!(field(&changed.stdout, "reacquire"), "never");
    assert_eq!(field(&changed.stdout, "seats"), "0 of 5 in use", "{}", changed.stderr);
    assert_eq!(field(&changed.stdout, "ttl seconds"), "2", "what was not said stays as it is");

    assert_eq!(field(&harness.command(&["license", "suspend", &id]).stdout, "status"), "suspended");
    assert_eq!(field(&harness.command(&["license", "resume", &id]).stdout, "status"), "active");
    assert_eq!(field(&harness.command(&["license", "revoke", &id]).stdout, "status"), "revoked");

    let shown = harness.command(&["license", "show", &id, "--json"]);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!((&shown["max_seats"], &shown["status"]), (&json!(5), &json!("revoked")));
    let again = harness.command(&["license", "resume", &id]);
    assert_eq!(again.status.code(), Some(1));
    assert!(again.stderr.contains("409"), "{}", again.stderr);
}

#[test]
fn a_plan_and_a_subscription_to_it_from_their_creation_to_their_end() {
    let harness = Harness::open();
    let made = harness.command(&["plan", "create", "family", "--devices", "6", "--ttl-seconds", "60"]);
    assert_eq!(made.status.code(), Some(0), "{}", made.stderr);
    assert_eq!(
        (field(&made.stdout, "devices"), field(&made.stdout, "when full")),
        ("6".into(), "evict".into())
    );
    let changed = harness.command(&["plan", "update", "family", "--when-full", "deny", "--unset-ttl"]);
    assert_eq!(
        field(&changed.stdout, "devices"),
        "6",
        "what was not said stays as it is: {}",
        changed.stderr
    );
    let shown = harness.command(&["plan", "show", "family", "--json"]);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!((&shown["when_full"], &shown["ttl_seconds"]), (&json!("deny"), &Value::Null));

    let ends = "2099-01-01T00:00:00Z";
    let made =
        harness.command(&["subscription", "create", "--user", "ann", "--plan", "family", "--ends-at", ends]);
    assert_eq!(field(&made.stdout, "status"), "active", "{}", made.stderr);
    let id = field(&made.stdout, "subscription id");
    let changed = harness.command(&["subscription", "update", &id, "--plan", "basic", "--unset-end"]);
    let ended = harness.command(&["subscription", "show", &id, "--json"]);
    let ended: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(field(&changed.stdout, "plan"), "basic", "{}", changed.stderr);
    assert_eq!(ended["ends_at"], Value::Null);

    assert_eq!(field(&harness.command(&["plan", "retire", "family"]).stdout, "status"), "retired");
    let listed = harness.command(&["plan", "list", "--status", "active"]).stdout;
    assert!(listed.contains("premium") && !listed.contains("family"), "{listed}");
    assert_eq!(field(&harness.command(&["subscription", "cancel", &id]).stdout, "status"), "cancelled");
    let listed = harness.command(&["subscription", "list", "--user", "ann", "--status", "cancelled"]).stdout;
    assert!(listed.contains(&id), "{listed}");
    let again = harness.command(&["subscription", "update", &id, "--plan", "premium"]);
    assert!(again.status.code() == Some(1) && again.stderr.contains("409"), "{}", again.stderr);
}

#[test]
fn licenses_are_listed_as_a_table_and_as_json() {
    let harness = Harness::open();
    for key in ["K-1", "K-2", "K-3"] {
        harness.command(&["license", "create", "--seats", "1", "--key", key]);
    }
    let table = harness.command(&["license", "list"]).stdout;
    let header = table.lines().next().unwrap().split_whitespace().collect::<Vec<_>>();
    assert_eq!(header, ["LICENSE", "ID", "KEY", "SEATS", "STATUS", "EXPIRES", "PER", "TTL"]);
    assert_eq!(table.lines().count(), 4, "{table}");

    let two: Value =
        serde_json::from_str(&harness.command(&["license", "list", "--limit", "2", "--json"]).stdout)
            .unwrap();
    assert_eq!((two["items"].as_array().unwrap().len(), &two["more"]), (2, &json!(true)));
}

#[tokio::test]
async fn sessions_are_listed_and_revoked() {
    let harness = Harness::open();
    let license = harness.license(3).await;
    let ann = harness.client("ann");
    let mut ids = Vec::new();
    for machine in ["m1", "m2", "m3"] {
        ids.push(ann.acquire(&license["license_key"], machine).await.expect(201)["session_id"].clone());
    }
    let table = harness.command(&["sessions", "list", "--live"]).stdout;
    assert!(["m1", "m2", "m3"].iter().all(|machine| table.contains(machine)), "{table}");

    let one = harness.command(&["sessions", "revoke", ids[0].as_str().unwrap()]);
    assert_eq!((one.status.code(), one.stdout.as_str()), (Some(0), "1 ended\n"), "{}", one.stderr);
    assert_eq!(ann.heartbeat(&ids[0]).await.expect(410)["reason"], "revoked");

    let rest = harness.command(&["sessions", "revoke", "--license", license["license_id"].as_str().unwrap()]);
    assert_eq!(rest.stdout, "2 ended\n", "{}", rest.stderr);
    assert_eq!(harness.command(&["sessions", "list", "--live"]).stdout.lines().count(), 1);
    let ended = harness.command(&["sessions", "list", "--ended", "--holder", "m2"]).stdout;
    assert!(ended.contains("revoked") && !ended.contains("m3"), "{ended}");
}

#[tokio::test]
async fn the_members_of_a_group_are_listed_and_ended_and_its_plan_is_a_command() {
    let harness = Harness::open();
    let create = ["plan", "create", "party", "--devices", "1", "--group-members-max", "3"];
    let made = harness.command(&[&create[..], &["--group-scope", "any_user"]].concat());
    assert_eq!(field(&made.stdout, "group members"), "3", "{}", made.stderr);
    assert_eq!(field(&made.stdout, "group scope"), "any_user");
    let changed = harness.command(&["plan", "update", "party", "--group-same-content", "true"]);
    assert_eq!(field(&changed.stdout, "group same content"), "true", "{}", changed.stderr);
    assert_eq!(field(&changed.stdout, "group members"), "3");
    let changed = harness.command(&["plan", "update", "party", "--group-same-content", "false"]);
    assert_eq!(field(&changed.stdout, "group same content"), "false", "{}", changed.stderr);
    assert!(!harness.command(&["plan", "update", "party", "--group-members-max", "9"]).status.success());
    harness
        .admin()
        .post("/api/v1/admin/subscriptions", json!({ "user": "ann", "plan": "party" }))
        .await
        .expect(201);

    let (ann, bob) = (harness.client("ann"), harness.client("bob"));
    let device = |id: &str| json!({ "device_id": id, "device_type": "tv", "device_name": id });
    let mut ask = device("den");
    ask["session_id"] =
        ann.post("/api/v1/devices/sessions", device("den")).await.expect(201)["session_id"].clone();
    let host = ann.post("/api/v1/devices/groups", ask).await.expect(201);
    let mut ask = device("phone");
    ask["join_code"] = host["join_code"].clone();
    bob.post("/api/v1/devices/groups/join", ask).await.expect(201);

    let group = host["group_id"].as_str().unwrap();
    // An admission of a device is answered before its commit.
    let table = eventually("the record of both members", || {
        let table = harness.command(&["sessions", "list", "--group", group]).stdout;
        if table.lines().count() == 3 { Ok(table) } else { Err(table) }
    });
    assert!(table.contains("tv: den") && table.contains("tv: phone") && table.contains(" bob "), "{table}");
    assert_eq!(harness.command(&["sessions", "list", "--kind", "group", "--live"]).stdout.lines().count(), 3);
    assert_eq!(harness.command(&["sessions", "revoke", "--group", group]).stdout, "2 ended\n");
    assert_eq!(harness.command(&["sessions", "list", "--group", group, "--live"]).stdout.lines().count(), 1);
}

#[tokio::test]
async fn sessions_of_every_kind_are_told_apart() {
    const TENANT: &str = "6f1d2c3b-0d5e-4f7a-9b8c-1a2b3c4d5e6f";
    const CAPACITY: &str = "5a000000-0000-4000-8000-0000000000c1";
    let harness = Harness::open();
    let command = |args: &[&str]| harness.command(&[args, &["--tenant", TENANT]].concat());
    let license = command(&["license", "create", "--seats", "1", "--key", "K"]);
    assert_eq!(license.status.code(), Some(0), "{}", license.stderr);
    let ann = Client::new(harness.url(), harness.token_of(TENANT, "ann", "service"));
    ann.acquire(&json!("K"), "m1").await.expect(201);
    ann.post(
        "/api/v1/devices/sessions",
        json!({ "device_id": "d1", "device_type": "tv", "device_name": "Den" }),
    )
    .await
    .expect(201);
    let users = ["a0000000-0000-4000-8000-0000000000a1", "a0000000-0000-4000-8000-0000000000a2"];
    for user in users {
        let ask = json!({ "userObjectId": user, "tenantObjectId": TENANT, "capacityId": CAPACITY, "sessionKind": 3 });
        ann.put("/api/v1/capacities/sessions", ask).await.expect(201);
    }

    let table = command(&["sessions", "list", "--live"]).stdout;
    let line_of = |kind: &str| {
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let found = table.lines().map(words).find(|line| line.contains(&format!(" {kind} ")));
        found.unwrap_or_else(|| panic!("no line of a {kind}:\n{table}"))
    };
    assert!(line_of("license").contains(" m1 ann - "), "{table}");
    assert!(line_of("subscriber").contains(" ann tv: Den "), "{table}");
    assert!(line_of("capacity").contains(&format!(" {CAPACITY} {} ann tier 3 ", users[1])), "{table}");
    for (kind, lines) in [("license", 1), ("subscriber", 1), ("capacity", 2)] {
        let table = command(&["sessions", "list", "--kind", kind]).stdout;
        assert_eq!(table.lines().count(), 1 + lines, "{kind}:\n{table}");
    }

    let pool = format!("{}/{CAPACITY}", users[0]).to_uppercase();
    let found = command(&["sessions", "list", "--capacity", &pool]).stdout;
    assert!(found.lines().count() == 2 && found.contains(users[0]), "{found}");
    let revoked = command(&["sessions", "revoke", "--capacity", &pool]);
    assert_eq!(revoked.stdout, "1 ended\n", "{}", revoked.stderr);
    assert_eq!(command(&["sessions", "revoke", "--subscriber", "ann"]).stdout, "1 ended\n");
    assert_eq!(command(&["sessions", "list", "--live"]).stdout.lines().count(), 3);

    for wrong in [&["--capacity", "x"][..], &["--capacity", &pool, "--subscriber", "ann"], &["--kind", "x"]] {
        let output = command(&[&["sessions", "list"], wrong].concat());
        assert!(!output.status.success() && !output.stderr.is_empty(), "{wrong:?}: {}", output.stdout);
    }
}

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

#[test]
fn two_servers_do_not_share_a_data_directory() {
    let harness = Harness::open();
    let second =
        run(&["serve", "--listen", "127.0.0.1:0", "--data-dir", harness.data_dir().to_str().unwrap()]);
    assert_eq!(second.status.code(), Some(1));
    assert!(second.stderr.contains("another process uses the data directory"), "{}", second.stderr);
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
fn the_demonstration_ends_well_within_a_minute() {
    let started = Instant::now();
    let output = run(&["demo"]);
    assert_eq!(output.status.code(), Some(0), "{}{}", output.stdout, output.stderr);
    let story = [
        "welder denied",
        "welder acquired the robot's seat",
        "nothing is lost",
        "tier 3  upgraded",
        "none left its pool above its limit",
    ];
    for part in story {
        assert!(output.stdout.contains(part), "{part}: {}", output.stdout);
    }
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}

#[test]
fn a_bench_prints_its_figures_and_leaves_no_seat_taken() {
    let harness = Harness::open();
    for scenario in ["heartbeat", "denied", "cycle"] {
        let args = [
            "bench",
            "--scenario",
            scenario,
            "--concurrency",
            "4",
            "--seconds",
            "5",
            "--requests",
            "200",
            "--json",
        ];
        let output = harness.command(&args);
        assert_eq!(output.status.code(), Some(0), "{scenario}: {}{}", output.stdout, output.stderr);
        let report: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(report["violations"]["count"], 0, "{report}");
        assert!(report["requests"].as_u64().unwrap() >= 200, "{report}");
    }
    let live: Value =
        serde_json::from_str(&harness.command(&["sessions", "list", "--live", "--json"]).stdout).unwrap();
    assert_eq!(live["items"], json!([]));
    harness.prove();
}
