//! Tests of `/api/v1/admin/sessions`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::http::capacities::place::CapacityFixture;
use crate::http::exchange::assert_problem;
use crate::http::tenant_client::{ACQUIRE, DEVICES, SESSIONS, TenantClient, text};

#[tokio::test]
async fn sessions_are_found_by_each_filter_and_by_all_of_them() {
    let api = TenantClient::open();
    let (cad, cam) =
        (api.license(json!({ "max_seats": 5 })).await, api.license(json!({ "max_seats": 5 })).await);
    let first = api.seat(&cad, "ann", "laptop-1").await;
    let second = api.seat(&cad, "bob", "laptop-2").await;
    let third = api.seat(&cam, "ann", "laptop-1").await;
    api.user("ann").release(&first).await.expect(204);
    let cad_id = text(&cad["license_id"]);
    for (filter, wanted) in [
        (String::new(), vec![&third, &second, &first]),
        ("pool_kind=license".into(), vec![&third, &second, &first]),
        ("pool_kind=subscriber".into(), vec![]),
        (format!("pool={cad_id}"), vec![&second, &first]),
        ("holder=laptop-1".into(), vec![&third, &first]),
        ("user=bob".into(), vec![&second]),
        ("ip=127.0.0.1".into(), vec![&third, &second, &first]),
        ("ip=192.0.2.1".into(), vec![]),
        ("live=true".into(), vec![&third, &second]),
        ("live=false".into(), vec![&first]),
        (format!("pool_kind=license&pool={cad_id}&holder=laptop-1&user=ann&live=false"), vec![&first]),
        ("user=ann&holder=laptop-2".into(), vec![]),
    ] {
        let found = api.admin().get(&format!("{SESSIONS}?{filter}")).await.expect(200);
        assert_eq!(ids(&found), wanted.into_iter().map(|id| text(id).to_owned()).collect(), "{filter}");
    }
}

#[tokio::test]
async fn a_machine_finds_the_processes_on_it_and_on_no_other() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 5, "count_per": "process" })).await;
    let mut taken = Vec::new();
    for (machine, instance) in [("laptop-1", "a"), ("laptop-1", "b"), ("laptop-10", "a")] {
        let ask = json!({
            "license_key": license["license_key"], "machine_id": machine, "instance_id": instance,
        });
        let answer = api.user("ann").post(ACQUIRE, ask).await.expect(201);
        taken.push(text(&answer["session_id"]).to_owned());
    }
    let found = api.admin().get(&format!("{SESSIONS}?holder=laptop-1")).await.expect(200);
    assert_eq!(ids(&found), taken.into_iter().take(2).collect());
}

#[tokio::test]
async fn a_filter_may_hold_any_character() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 5 })).await;
    let name = "Büro 1 & 2 = \"größer\" % + 汉";
    let ask = json!({ "license_key": license["license_key"], "machine_id": name });
    let taken = api.user("ann").post(ACQUIRE, ask).await.expect(201);
    let url =
        reqwest::Url::parse_with_params("http://localhost", [("holder", name), ("pool_kind", "license")]);
    let query = url.unwrap().query().unwrap().to_owned();
    let found = api.admin().get(&format!("{SESSIONS}?{query}")).await.expect(200);
    assert_eq!(ids(&found), BTreeSet::from([text(&taken["session_id"]).to_owned()]));
}

#[tokio::test]
async fn sessions_come_in_pages_without_one_missing_or_twice() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 5 })).await;
    let mut all = BTreeSet::new();
    for machine in 1..=5 {
        all.insert(text(&api.seat(&license, "ann", &format!("laptop-{machine}")).await).to_owned());
    }
    let (mut found, mut cursor) = (BTreeSet::new(), String::new());
    for size in [2, 2, 1] {
        let page = api.admin().get(&format!("{SESSIONS}?limit=2{cursor}")).await.expect(200);
        assert_eq!(page["items"].as_array().unwrap().len(), size);
        found.extend(ids(&page));
        cursor = page["next_cursor"].as_str().map(|next| format!("&cursor={next}")).unwrap_or_default();
    }
    assert_eq!((found, cursor.as_str()), (all, ""));
}

#[tokio::test]
async fn an_admin_reads_a_session_of_any_kind_as_the_search_shows_it() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1 })).await;
    let (place, admin) = (CapacityFixture::new(&api), api.admin());
    let screen = json!({ "device_id": "tv", "device_type": "tv" });
    let seat = api.seat(&license, "ann", "laptop-1").await;
    let screen = api.user("ann").post(DEVICES, screen).await.expect(201)["session_id"].clone();
    let capacity = place.take(&api.service("ann"), 1).await;
    for (session, field) in [(&seat, "machine_id"), (&screen, "holder"), (&capacity, "holder")] {
        let path = format!("{SESSIONS}/{}", text(session));
        for status in ["active", "ended"] {
            let read = admin.get(&path).await.expect(200);
            assert_eq!((&read["session_id"], &read["status"]), (session, &json!(status)));
            let holders = ["machine_id", "holder"].map(|name| read.get(name).is_some());
            assert_eq!(holders, [field == "machine_id", field == "holder"], "{read}");
            let found = admin.get(SESSIONS).await.expect(200);
            assert!(found["items"].as_array().unwrap().contains(&read), "{read} is not in {found}");
            assert_problem(&api.neighbour().admin().get(&path).await, 404, "another tenant's");
            if status == "active" {
                admin.delete(&path).await.expect(204);
            }
        }
    }
}

#[tokio::test]
async fn a_revoked_session_is_told_so_and_its_seat_is_free() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1 })).await;
    let session = api.seat(&license, "ann", "laptop-1").await;
    let path = format!("{SESSIONS}/{}", text(&session));
    api.admin().delete(&path).await.expect(204);
    assert_eq!(api.user("ann").heartbeat(&session).await.expect(410)["reason"], "revoked");
    api.seat(&license, "bob", "laptop-2").await;
    assert_problem(&api.admin().delete(&path).await, 404, "ended already");
}

#[tokio::test]
async fn all_sessions_of_a_license_are_revoked_and_no_others() {
    let api = TenantClient::open();
    let (cad, cam) =
        (api.license(json!({ "max_seats": 5 })).await, api.license(json!({ "max_seats": 5 })).await);
    let mut sessions = Vec::new();
    for machine in ["laptop-1", "laptop-2", "laptop-3"] {
        sessions.push(api.seat(&cad, "ann", machine).await);
    }
    let other = api.seat(&cam, "ann", "laptop-1").await;
    let all = format!("{SESSIONS}?pool_kind=license&pool={}", text(&cad["license_id"]));
    assert_eq!(api.admin().delete(&all).await.expect(200), json!({ "ended": 3 }));
    for session in &sessions {
        assert_eq!(api.user("ann").heartbeat(session).await.expect(410)["reason"], "revoked");
    }
    api.user("ann").heartbeat(&other).await.expect(200);
    assert_eq!(api.admin().delete(&all).await.expect(200), json!({ "ended": 0 }));
}

#[tokio::test]
async fn a_search_and_a_revocation_take_the_same_spellings_of_a_pool() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1 })).await;
    let session = api.seat(&license, "ann", "laptop-1").await;
    let (place, admin) = (CapacityFixture::new(&api), api.admin());
    let capacity = place.take(&api.service("ann"), 1).await;
    let found = admin.get(&format!("{SESSIONS}?pool_kind=capacity")).await.expect(200);
    let pools = [
        ("license", text(&license["license_id"]).to_owned(), session),
        ("capacity", text(&found["items"][0]["pool"]).to_owned(), capacity),
    ];
    for (kind, pool, session) in pools {
        let shouted = format!("{SESSIONS}?pool_kind={kind}&pool={}", pool.to_uppercase());
        for filter in ["", "&live=true"] {
            let found = admin.get(&format!("{shouted}{filter}")).await.expect(200);
            assert_eq!(ids(&found), BTreeSet::from([text(&session).to_owned()]), "{kind}{filter}");
        }
        assert_eq!(admin.delete(&shouted).await.expect(200), json!({ "ended": 1 }), "{kind}");
        for no_pool in ["x", ""] {
            let path = format!("{SESSIONS}?pool_kind={kind}&pool={no_pool}");
            let (found, ended) = (admin.get(&path).await, admin.delete(&path).await);
            assert_problem(&found, 422, &path);
            assert_eq!(found.body["errors"], ended.body["errors"], "{path}");
        }
    }
}

#[tokio::test]
async fn another_tenants_admin_finds_and_ends_nothing() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1 })).await;
    let session = api.seat(&license, "ann", "laptop-1").await;
    let elsewhere = api.neighbour().admin();
    let pool = text(&license["license_id"]);
    for filter in [String::new(), format!("?pool={pool}"), "?user=ann".into(), "?holder=laptop-1".into()] {
        let found = elsewhere.get(&format!("{SESSIONS}{filter}")).await.expect(200);
        assert_eq!(found, json!({ "items": [] }), "{filter}");
    }
    elsewhere.delete(&format!("{SESSIONS}/{}", text(&session))).await.expect(404);
    let all = format!("{SESSIONS}?pool_kind=license&pool={pool}");
    assert_eq!(elsewhere.delete(&all).await.expect(200), json!({ "ended": 0 }));
    api.user("ann").heartbeat(&session).await.expect(200);
}

fn ids(page: &Value) -> BTreeSet<String> {
    page["items"].as_array().unwrap().iter().map(|item| text(&item["session_id"]).to_owned()).collect()
}
