//! Tests of `POST /api/v1/licenses/acquire`.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::http::exchange::{assert_field, assert_problem};
use crate::http::shown::shown;
use crate::http::tenant_client::{ACQUIRE, AUDIT, SESSIONS, TenantClient, license_path, session_path};
use crate::http::until::until;

#[tokio::test]
async fn a_free_seat_is_taken() {
    let api = TenantClient::open();
    api.license(json!({ "license_key": "CAD", "max_seats": 3, "ttl_seconds": 90 })).await;
    let answer = api.user("ann").acquire(&json!("CAD"), "laptop-1").await.expect(201);
    assert_eq!(
        shown(&answer),
        json!({
            "session_id": "[id]",
            "license_id": "[id]",
            "license_key": "CAD",
            "started_at": "[time]",
            "expires_at": "[time]",
            "seats_used": 1,
            "seats_remaining": 2,
            "seats_total": 3,
            "expires_in_seconds": 90,
            "heartbeat_interval_seconds": 30,
            "grace_seconds": 0,
            "reacquire": "expired_only",
            "release_code": answer["release_code"],
            "status": "acquired"
        })
    );
}

#[tokio::test]
async fn the_machine_that_holds_a_seat_resumes_also_when_all_are_taken() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1 })).await;
    let session = api.seat(&license, "ann", "laptop-1").await;
    let again = api.user("ann").acquire(&license["license_key"], "laptop-1").await.expect(200);
    assert_eq!((&again["session_id"], &again["status"]), (&session, &json!("resumed")));
    assert_eq!((&again["seats_used"], &again["seats_remaining"]), (&json!(1), &json!(0)));
}

#[tokio::test]
async fn the_same_acquire_many_times_at_once_takes_one_seat() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 2 })).await;
    let user = api.user("ann");
    let answers = join_all((0..50).map(|_| user.acquire(&license["license_key"], "laptop-1"))).await;
    let sessions: Vec<_> = answers.iter().map(|answer| &answer.body["session_id"]).collect();
    assert!(sessions.iter().all(|session| *session == sessions[0]), "{sessions:?}");
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 1);
    assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 49);
    assert_eq!(api.license_now(&license).await["seats_used"], 1);
}

#[tokio::test]
async fn a_full_license_denies_and_tells_who_holds_it_and_when_to_ask_again() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 2 })).await;
    api.seat(&license, "ann", "laptop-1").await;
    api.seat(&license, "bob", "laptop-2").await;
    let denied = api.user("cid").acquire(&license["license_key"], "laptop-3").await;
    assert_problem(&denied, 403, "full");
    let wait = denied.body["retry_after_seconds"].as_u64().unwrap();
    assert!((1..=75).contains(&wait), "{wait}");
    assert_eq!(denied.headers["retry-after"], wait.to_string());
    let mut body = shown(&denied.body);
    body["retry_after_seconds"] = "[wait]".into();
    body["holders"].as_array_mut().unwrap().sort_by_key(|holder| holder["machine_id"].to_string());
    assert_eq!(
        body,
        json!({
            "type": "/problems/license-full",
            "title": "All license seats are currently in use",
            "status": 403,
            "detail": "Ask again after `retry_after_seconds`.",
            "error": "All license seats are currently in use",
            "seats_available": 0,
            "seats_total": 2,
            "retry_after_seconds": "[wait]",
            "holders": [
                { "machine_id": "laptop-1", "since": "[time]", "last_heartbeat_at": "[time]" },
                { "machine_id": "laptop-2", "since": "[time]", "last_heartbeat_at": "[time]" }
            ]
        })
    );
}

#[tokio::test]
async fn a_full_license_asks_for_a_wait_no_longer_than_its_seats_last() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1, "ttl_seconds": 4 })).await;
    api.seat(&license, "ann", "laptop-1").await;
    let denied = api.user("bob").acquire(&license["license_key"], "laptop-2").await.expect(403);
    let wait = denied["retry_after_seconds"].as_u64().unwrap();
    assert!((1..=5).contains(&wait), "{wait}");
}

#[tokio::test]
async fn a_full_license_keeps_its_holders_to_itself_where_that_is_set() {
    let api = TenantClient::open_with(&[("LICENSES_SHOW_HOLDERS", "false")]);
    let license = api.license(json!({ "max_seats": 1 })).await;
    api.seat(&license, "ann", "laptop-1").await;
    let denied = api.user("bob").acquire(&license["license_key"], "laptop-2").await.expect(403);
    assert_eq!((denied.get("holders"), &denied["seats_total"]), (None, &json!(1)));
}

#[tokio::test]
async fn a_license_without_seats_denies_everyone() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 0 })).await;
    let denied = api.user("ann").acquire(&license["license_key"], "laptop-1").await;
    assert_problem(&denied, 403, "no seats");
    assert_eq!(denied.body["type"], "/problems/license-full");
    assert_eq!((&denied.body["seats_total"], &denied.body["holders"]), (&json!(0), &json!([])));
}

#[tokio::test]
async fn a_license_past_its_date_denies_and_names_whom_to_ask() {
    let api = TenantClient::open();
    let ask =
        json!({ "max_seats": 3, "expires_at": "2020-02-29T12:00:00+01:00", "contact": "sales@example.org" });
    let license = api.license(ask).await;
    let denied = api.user("ann").acquire(&license["license_key"], "laptop-1").await;
    assert_problem(&denied, 403, "expired");
    assert_eq!(
        denied.body,
        json!({
            "type": "/problems/license-expired",
            "title": "License has expired",
            "status": 403,
            "detail": "The license is past its date.",
            "error": "License has expired",
            "expired_at": "2020-02-29T11:00:00.000Z",
            "contact_support": "sales@example.org"
        })
    );
}

#[tokio::test]
async fn the_server_names_whom_to_ask_where_an_expired_license_does_not() {
    let expired = json!({ "max_seats": 1, "expires_at": "2020-01-01T00:00:00Z" });
    for (settings, named) in [
        (&[][..], None),
        (&[("LICENSES_CONTACT_SUPPORT", "help@example.org")][..], Some(json!("help@example.org"))),
    ] {
        let api = TenantClient::open_with(settings);
        let license = api.license(expired.clone()).await;
        let denied = api.user("ann").acquire(&license["license_key"], "laptop-1").await.expect(403);
        assert_eq!(denied.get("contact_support"), named.as_ref());
    }
}

#[tokio::test]
async fn an_unknown_a_suspended_and_a_revoked_license_look_the_same() {
    let api = TenantClient::open();
    let user = api.user("ann");
    let unknown = user.acquire(&json!("NO-SUCH-KEY"), "laptop-1").await;
    assert_problem(&unknown, 404, "unknown");
    assert_eq!(unknown.body["error"], "License not found or inactive");
    for status in ["suspended", "revoked"] {
        let license = api.license(json!({ "max_seats": 3 })).await;
        api.change(&license, json!({ "status": status })).await;
        let inactive = user.acquire(&license["license_key"], "laptop-1").await;
        assert_eq!((inactive.status, &inactive.body), (404, &unknown.body), "{status}");
    }
}

#[tokio::test]
async fn a_license_that_counts_machines_gives_the_users_of_one_machine_one_seat() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1, "count_per": "machine" })).await;
    let session = api.seat(&license, "ann", "laptop-1").await;
    let shared = api.user("bob").acquire(&license["license_key"], "laptop-1").await.expect(200);
    assert_eq!((&shared["session_id"], &shared["seats_used"]), (&session, &json!(1)));
    for user in ["ann", "bob"] {
        api.user(user).heartbeat(&session).await.expect(200);
    }
    api.user("cid").heartbeat(&session).await.expect(404);
    // A user that leaves does not release the seat of the machine's other user.
    api.user("bob").release(&session).await.expect(204);
    api.user("bob").heartbeat(&session).await.expect(404);
    api.user("ann").heartbeat(&session).await.expect(200);
    api.user("ann").release(&session).await.expect(204);
    api.user("cid").acquire(&license["license_key"], "laptop-2").await.expect(201);
}

#[tokio::test]
async fn a_license_that_counts_users_gives_one_user_one_seat_on_all_machines() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1, "count_per": "user" })).await;
    let session = api.seat(&license, "ann", "laptop-1").await;
    let elsewhere = api.user("ann").acquire(&license["license_key"], "laptop-2").await.expect(200);
    assert_eq!(elsewhere["session_id"], session);
    api.user("bob").acquire(&license["license_key"], "laptop-1").await.expect(403);
}

#[tokio::test]
async fn a_license_that_counts_processes_gives_each_of_them_a_seat() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 2, "count_per": "process" })).await;
    let user = api.user("ann");
    let ask = |instance: &str| json!({ "license_key": license["license_key"], "machine_id": "laptop-1", "instance_id": instance });
    let first = user.post(ACQUIRE, ask("1")).await.expect(201);
    user.post(ACQUIRE, ask("2")).await.expect(201);
    assert_eq!(user.post(ACQUIRE, ask("1")).await.expect(200)["session_id"], first["session_id"]);
    let full = user.post(ACQUIRE, ask("3")).await.expect(403);
    let mut instances: Vec<_> =
        full["holders"].as_array().unwrap().iter().map(|holder| holder["instance_id"].to_string()).collect();
    instances.sort();
    assert_eq!(instances, ["\"1\"", "\"2\""]);
    let unnamed = user.acquire(&license["license_key"], "laptop-1").await;
    assert_field(&unnamed, "instance_id", "a process without a name");
}

#[tokio::test]
async fn what_a_client_tells_of_itself_goes_on_record() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1 })).await;
    let metadata = json!({ "project": "Brücke", "build": { "number": 7 }, "tags": ["a", null] });
    let ask = json!({
        "license_key": license["license_key"], "machine_id": "laptop-1", "user_agent": "cad/7.1",
        "metadata": metadata, "of_a_later_version": true
    });
    api.user("ann").post(ACQUIRE, ask).await.expect(201);
    let found = api.admin().get(&format!("{SESSIONS}?holder=laptop-1")).await.expect(200);
    let session: &Value = &found["items"][0];
    assert_eq!((&session["user_agent"], &session["metadata"]), (&json!("cad/7.1"), &metadata));
    assert_eq!((&session["user"], &session["ip"]), (&json!("ann"), &json!("127.0.0.1")));
}

#[tokio::test]
async fn an_acquire_tells_the_policy_of_the_license_for_its_clients() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1, "grace_seconds": 86_400, "reacquire": "never" })).await;
    for status in [201, 200] {
        let answer = api.user("ann").acquire(&license["license_key"], "laptop-1").await.expect(status);
        assert_eq!((&answer["grace_seconds"], &answer["reacquire"]), (&json!(86_400), &json!("never")));
    }
    api.change(&license, json!({ "grace_seconds": 0, "reacquire": "expired_only" })).await;
    // A node other than the node of the change learns of the change within a second.
    until("an acquire tells the new policy", async || {
        let answer = api.user("ann").acquire(&license["license_key"], "laptop-1").await.expect(200);
        let told = (&answer["grace_seconds"], &answer["reacquire"]);
        if told == (&json!(0), &json!("expired_only")) { Ok(()) } else { Err(answer.to_string()) }
    })
    .await;
}

#[tokio::test]
async fn the_program_of_a_client_is_its_user_agent_on_record() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 9 })).await;
    let long = "x".repeat(100);
    let longest = json!({ "name": long, "version": long, "sdk": long });
    for (number, (client, user_agent, recorded)) in [
        (
            json!({ "name": "cad", "version": "7.1", "sdk": "seatkeeper-go/0.1" }),
            None,
            "cad/7.1 (seatkeeper-go/0.1)",
        ),
        (json!({ "name": "cad", "version": "7.1" }), None, "cad/7.1"),
        (json!({ "name": "cad", "later": 1 }), None, "cad"),
        (longest, None, &*format!("{long}/{long} ({long})")),
        (json!({ "name": "cad" }), Some("browser/1"), "browser/1"),
    ]
    .into_iter()
    .enumerate()
    {
        let mut ask = json!({ "license_key": license["license_key"], "machine_id": format!("m{number}"), "client": client });
        if let Some(user_agent) = user_agent {
            ask["user_agent"] = json!(user_agent);
        }
        let taken = api.user("ann").post(ACQUIRE, ask).await.expect(201);
        let read = api.user("ann").get(&session_path(&taken["session_id"])).await.expect(200);
        assert_eq!(read["user_agent"], recorded);
    }
    let records = api.admin().get(&format!("{AUDIT}?action=admitted")).await.expect(200);
    let records = records["items"].as_array().unwrap();
    assert!(
        records.iter().any(|record| record["user_agent"] == "cad/7.1 (seatkeeper-go/0.1)"),
        "{records:?}"
    );
}

#[tokio::test]
async fn a_program_of_a_client_has_short_printable_parts() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1 })).await;
    for part in ["name", "version", "sdk"] {
        for wrong in ["", "a\nb", "\u{0}", &"x".repeat(101)] {
            let mut client = json!({ "name": "cad" });
            client[part] = json!(wrong);
            let ask = json!({ "license_key": license["license_key"], "machine_id": "m", "client": client });
            let refused = api.user("ann").post(ACQUIRE, ask).await;
            assert_field(&refused, &format!("client.{part}"), wrong);
        }
    }
    assert_eq!(api.license_now(&license).await["seats_used"], 0);
}

#[tokio::test]
async fn licenses_of_two_tenants_may_have_one_key_and_share_nothing() {
    let (here, there) = (TenantClient::open(), TenantClient::open());
    let ask = json!({ "license_key": "CAD", "max_seats": 1 });
    let (mine, theirs) = (here.license(ask.clone()).await, there.license(ask).await);
    here.seat(&mine, "ann", "laptop-1").await;
    there.seat(&theirs, "ann", "laptop-1").await;
    assert_ne!(mine["license_id"], theirs["license_id"]);
    there.admin().delete(&license_path(&mine)).await.expect(404);
}
