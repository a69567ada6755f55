//! `seatkeeper sessions`.

use serde_json::json;

use crate::field;
use crate::harness::{Client, Harness, eventually};

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
