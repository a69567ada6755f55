//! Commands for licenses, plans and subscriptions.

use serde_json::{Value, json};

use crate::field;
use crate::harness::Harness;

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
fn a_change_of_a_version_that_is_no_more_fails() {
    let harness = Harness::open();
    let id = field(&harness.command(&["license", "create", "--seats", "10"]).stdout, "license id");
    harness.command(&["plan", "create", "family", "--devices", "6"]);
    let made = harness.command(&["subscription", "create", "--user", "ann", "--plan", "family"]).stdout;
    let subscription = field(&made, "subscription id");
    let changes = [
        ["license", &id, "--seats", "12", "15"],
        ["subscription", &subscription, "--plan", "basic", "premium"],
        ["plan", "family", "--devices", "7", "8"],
    ];
    for [kind, id, argument, first, second] in changes {
        let version = field(&harness.command(&[kind, "show", id]).stdout, "version");
        let update =
            |value| harness.command(&[kind, "update", id, argument, value, "--if-version", &version]);
        let changed = update(first);
        assert_eq!(changed.status.code(), Some(0), "{kind}: {}", changed.stderr);
        assert_ne!(field(&changed.stdout, "version"), version);
        let late = update(second);
        assert_eq!(late.status.code(), Some(1), "{kind}: {}", late.stdout);
        assert!(late.stderr.contains("412"), "{}", late.stderr);
    }
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
