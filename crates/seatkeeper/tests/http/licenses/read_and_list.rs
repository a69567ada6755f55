//! Tests of `GET /api/v1/licenses/sessions/{session_id}` and `GET /api/v1/licenses/{license_id}/sessions`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::http::exchange::assert_problem;
use crate::http::shown::shown;
use crate::http::tenant_client::{ACQUIRE, TenantClient, session_path, sessions_path, text};
use crate::http::until::until;

#[tokio::test]
async fn a_live_session_is_shown_with_its_holder() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1 })).await;
    let session = api.seat(&license, "ann", "laptop-1").await;
    let read = api.user("ann").get(&session_path(&session)).await.expect(200);
    assert_eq!(
        shown(&read),
        json!({
            "session_id": "[id]",
            "pool_kind": "license",
            "pool": "[id]",
            "machine_id": "laptop-1",
            "user": "ann",
            "started_at": "[time]",
            "last_heartbeat_at": "[time]",
            "expires_at": "[time]",
            "status": "active",
            "ip": "127.0.0.1"
        })
    );
    assert_eq!((&read["session_id"], &read["pool"]), (&session, &license["license_id"]));
}

#[tokio::test]
async fn an_ended_session_is_shown_with_its_end() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1 })).await;
    let session = api.seat(&license, "ann", "laptop-1").await;
    api.user("ann").release(&session).await.expect(204);
    let read = api.user("ann").get(&session_path(&session)).await.expect(200);
    assert_eq!((&read["status"], &read["reason"]), (&json!("ended"), &json!("released")));
    assert!(text(&read["ended_at"]) >= text(&read["started_at"]));
}

#[tokio::test]
async fn all_users_of_a_machine_and_the_admin_see_its_session_and_nobody_else() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1 })).await;
    let session = api.seat(&license, "ann", "laptop-1").await;
    api.user("bob").acquire(&license["license_key"], "laptop-1").await.expect(200);
    for reader in [api.user("ann"), api.user("bob"), api.admin()] {
        reader.get(&session_path(&session)).await.expect(200);
    }
    assert_problem(&api.user("cid").get(&session_path(&session)).await, 404, "someone else");
}

/// Members of a session that concern its recorded user alone.
const PARTICULARS: [&str; 4] = ["user", "ip", "user_agent", "metadata"];

#[tokio::test]
async fn a_further_user_of_a_machine_sees_its_session_without_the_first_users_particulars() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1 })).await;
    let ask = json!({
        "license_key": license["license_key"], "machine_id": "laptop-1", "user_agent": "cad/7.1",
        "metadata": { "ticket": "of ann" },
    });
    let session = api.user("ann").post(ACQUIRE, ask).await.expect(201)["session_id"].clone();
    api.user("bob").acquire(&license["license_key"], "laptop-1").await.expect(200);
    for (reader, sees) in [(api.user("ann"), true), (api.user("bob"), false), (api.admin(), true)] {
        let read = reader.get(&session_path(&session)).await.expect(200);
        let listed = reader.get(&sessions_path(&license)).await.expect(200);
        for shown in [&read, &listed["items"][0]] {
            assert_eq!((&shown["session_id"], &shown["machine_id"]), (&session, &json!("laptop-1")));
            assert_eq!(PARTICULARS.map(|member| shown.get(member).is_some()), [sees; 4], "{shown:#}");
        }
    }
}

#[tokio::test]
async fn a_user_who_gave_up_the_share_sees_the_session_again_once_it_has_ended() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1 })).await;
    let session = api.seat(&license, "ann", "laptop-1").await;
    api.user("bob").acquire(&license["license_key"], "laptop-1").await.expect(200);
    api.user("ann").release(&session).await.expect(204);
    assert_problem(&api.user("ann").get(&session_path(&session)).await, 404, "no share");
    let kept = api.user("bob").get(&session_path(&session)).await.expect(200);
    assert_eq!(kept["status"], "active");
    api.user("bob").release(&session).await.expect(204);
    let read = api.user("ann").get(&session_path(&session)).await.expect(200);
    assert_eq!((&read["status"], &read["reason"]), (&json!("ended"), &json!("released")));
}

#[tokio::test]
async fn an_admin_lists_all_live_sessions_and_a_user_the_users_own() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 5 })).await;
    let anns = api.seat(&license, "ann", "laptop-1").await;
    let bobs = api.seat(&license, "bob", "laptop-2").await;
    let gone = api.seat(&license, "bob", "laptop-3").await;
    api.user("bob").release(&gone).await.expect(204);
    let listed =
        async |client: crate::harness::Client| ids(&client.get(&sessions_path(&license)).await.expect(200));
    assert_eq!(listed(api.admin()).await, id_set([&bobs, &anns]));
    assert_eq!(listed(api.user("ann")).await, id_set([&anns]));
    assert_eq!(listed(api.user("bob")).await, id_set([&bobs]));
    assert_eq!(listed(api.user("cid")).await, id_set([]));
}

#[tokio::test]
async fn live_sessions_come_in_pages() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 5 })).await;
    let mut all = Vec::new();
    for machine in 1..=5 {
        all.push(api.seat(&license, "ann", &format!("laptop-{machine}")).await);
    }
    let (mut found, mut cursor) = (BTreeSet::new(), String::new());
    for size in [2, 2, 1] {
        let path = format!("{}?limit=2{cursor}", sessions_path(&license));
        let page = api.admin().get(&path).await.expect(200);
        assert_eq!(page["items"].as_array().unwrap().len(), size);
        found.extend(ids(&page));
        cursor = page["next_cursor"].as_str().map(|next| format!("&cursor={next}")).unwrap_or_default();
    }
    assert_eq!((found, cursor.as_str()), (id_set(&all), ""));
}

#[tokio::test]
async fn a_session_whose_time_is_over_is_not_listed() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1, "ttl_seconds": 2 })).await;
    api.seat(&license, "ann", "laptop-1").await;
    until("nobody is in", async || {
        let page = api.admin().get(&sessions_path(&license)).await.expect(200);
        if ids(&page).is_empty() { Ok(()) } else { Err(page.to_string()) }
    })
    .await;
    assert_eq!(api.license_now(&license).await["seats_used"], 0);
}

#[tokio::test]
async fn an_unknown_license_has_no_list() {
    let api = TenantClient::open();
    let unknown = json!({ "license_id": "0193d2f4-0007-7000-8abc-0123456789ab" });
    assert_problem(&api.user("ann").get(&sessions_path(&unknown)).await, 404, "unknown");
}

fn ids(page: &Value) -> BTreeSet<String> {
    id_set(page["items"].as_array().unwrap().iter().map(|item| &item["session_id"]))
}

fn id_set<'a>(ids: impl IntoIterator<Item = &'a Value>) -> BTreeSet<String> {
    ids.into_iter().map(|id| text(id).to_owned()).collect()
}
