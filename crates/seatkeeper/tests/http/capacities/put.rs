//! Tests of `PUT /api/v1/capacities/sessions`.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use futures_util::future::join_all;
use serde_json::{Value, json};
use uuid::Uuid;

use super::place::{CapacityFixture, path_of, timeless};
use crate::http::exchange::assert_problem;
use crate::http::shown::shown;
use crate::http::tenant_client::{AUDIT, CAPACITIES, TenantClient};

#[tokio::test]
async fn a_capacity_is_taken_for_thirty_days() {
    let api = TenantClient::open();
    let place = CapacityFixture::new(&api);
    let answer = place.put(&api.service("ann"), 2).await.expect(201);
    assert_eq!(
        shown(&answer),
        json!({
            "sessionId": "[id]",
            "userObjectId": "[id]",
            "tenantObjectId": "[id]",
            "capacityId": "[id]",
            "sessionKind": 2,
            "sessionStartUtc": "[time]",
            "sessionEndUtc": "[time]",
            "isActive": true,
            "status": "created"
        })
    );
    let mut expected = place.shown(&answer["sessionId"], 2);
    expected["status"] = "created".into();
    let (answer, [start, end]) = timeless(answer);
    assert_eq!((answer, end - start), (expected, TimeDelta::days(30)));
}

#[tokio::test]
async fn the_same_again_changes_nothing_and_renews_nothing() {
    let api = TenantClient::open();
    let place = CapacityFixture::new(&api);
    let mut first = place.put(&api.service("ann"), 2).await.expect(201);
    first["status"] = "existing".into();
    for kind in [2, 1, 2] {
        assert_eq!(place.put(&api.service("ann"), kind).await.expect(200), first, "asked for {kind}");
    }
    assert_eq!(place.found(&api.service("ann")).await.len(), 1);
}

#[tokio::test]
async fn a_higher_tier_ends_the_session_and_starts_another_in_the_same_instant() {
    let api = TenantClient::open();
    let (place, ann) = (CapacityFixture::new(&api), api.service("ann"));
    let mut sessions = vec![place.take(&ann, 1).await];
    for kind in [2, 3] {
        let answer = place.put(&ann, kind).await.expect(201);
        assert_eq!((&answer["status"], &answer["sessionKind"]), (&json!("upgraded"), &json!(kind)));
        let before = ann.get(&path_of(sessions.last().unwrap())).await.expect(200);
        assert_eq!((&before["isActive"], &before["endReason"]), (&json!(false), &json!("upgraded")));
        assert_eq!(before["sessionEndUtc"], answer["sessionStartUtc"]);
        let live: Vec<_> = place.found(&ann).await.iter().map(|found| found["sessionId"].clone()).collect();
        assert_eq!(live, [answer["sessionId"].clone()]);
        sessions.push(answer["sessionId"].clone());
    }
    assert_eq!(sessions.iter().map(Value::to_string).collect::<BTreeSet<_>>().len(), 3);
    upgrades_are_one_step_on_record(&api, &place).await;
}

/// Asserts that an upgrade's end and the following start have adjacent sequence numbers and the same time, so
/// that no other claim can come between.
async fn upgrades_are_one_step_on_record(api: &TenantClient, place: &CapacityFixture) {
    let page = api.admin().get(&format!("{AUDIT}?pool={}", place.pool())).await.expect(200);
    let mut records = page["items"].as_array().unwrap().clone();
    records.reverse();
    let told = |record: &Value| {
        let [seq, action, tier, live, limit] =
            ["seq", "action", "tier", "live", "limit"].map(|name| record[name].clone());
        json!([seq, action, tier, live, limit])
    };
    assert_eq!(
        records.iter().map(told).collect::<Vec<_>>(),
        [
            json!([1, "admitted", 1, 1, 1]),
            json!([2, "ended", 1, 0, 1]),
            json!([3, "admitted", 2, 1, 1]),
            json!([4, "ended", 2, 0, 1]),
            json!([5, "admitted", 3, 1, 1])
        ]
    );
    for at in [1, 3] {
        assert_eq!(records[at]["at"], records[at + 1]["at"]);
        assert_eq!(records[at]["request_id"], records[at + 1]["request_id"]);
        assert_eq!(records[at]["reason"], "upgraded");
    }
}

#[tokio::test]
async fn the_same_request_fifty_times_at_once_creates_one_session() {
    let api = TenantClient::open();
    let (place, ann) = (CapacityFixture::new(&api), api.service("ann"));
    let answers = join_all((0..50).map(|_| place.put(&ann, 2))).await;
    let sessions: BTreeSet<_> = answers.iter().map(|answer| answer.body["sessionId"].to_string()).collect();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    let told = |status: u16, word: &str| {
        answers.iter().filter(|answer| answer.status == status && answer.body["status"] == word).count()
    };
    assert_eq!((told(201, "created"), told(200, "existing")), (1, 49));
}

#[tokio::test]
async fn users_and_capacities_are_apart() {
    let api = TenantClient::open();
    let (place, ann) = (CapacityFixture::new(&api), api.service("ann"));
    let other_user = CapacityFixture { tenant: api.tenant.clone(), ..CapacityFixture::new(&api) };
    let other_capacity =
        CapacityFixture { tenant: api.tenant.clone(), capacity: other_user.capacity, ..place };
    for place in [&other_user, &other_capacity] {
        place.take(&ann, 1).await;
    }
    assert_eq!(other_user.found(&ann).await.len() + other_capacity.found(&ann).await.len(), 2);
}

#[tokio::test]
async fn ids_are_the_same_however_they_are_spelt() {
    let api = TenantClient::open();
    let (place, ann) = (CapacityFixture::new(&api), api.service("ann"));
    let session = place.take(&ann, 1).await;
    let ask = json!({
        "userObjectId": place.user.to_string().to_uppercase(),
        "tenantObjectId": place.tenant.replace('-', ""),
        "capacityId": format!("{{{}}}", place.capacity),
        "sessionKind": 1,
        "ofALaterVersion": true
    });
    let again = ann.put(CAPACITIES, ask).await.expect(200);
    assert_eq!((&again["sessionId"], &again["userObjectId"]), (&session, &json!(place.user)));
}

#[tokio::test]
async fn the_user_a_service_and_an_admin_take_a_users_capacity_and_nobody_else() {
    let api = TenantClient::open();
    let place = CapacityFixture::new(&api);
    for scopes in ["", "Service Admin admin,service"] {
        let refused = place.put(&api.client(api.token("ann", scopes)), 1).await;
        assert_problem(&refused, 403, scopes);
        assert_eq!(refused.body["type"], "/problems/capacity-of-another-user");
    }
    assert_problem(&place.put(&api.user(&Uuid::new_v4().to_string()), 1).await, 403, "another user");
    assert_eq!(place.found(&api.admin()).await, Vec::<Value>::new());
    // The subject's spelling of the UUID does not matter.
    for subject in [place.user.to_string(), place.user.simple().to_string().to_uppercase()] {
        let own = CapacityFixture { tenant: api.tenant.clone(), capacity: Uuid::new_v4(), ..place };
        own.put(&api.user(&subject), 1).await.expect(201);
    }
    for scopes in ["service", "admin"] {
        let other = CapacityFixture { tenant: api.tenant.clone(), capacity: Uuid::new_v4(), ..place };
        other.put(&api.client(api.token("ann", scopes)), 1).await.expect(201);
    }
}

#[tokio::test]
async fn another_tenant_needs_the_service_scope() {
    let api = TenantClient::open();
    let place = CapacityFixture::new(&api.neighbour());
    for scopes in ["", "admin", "Service services admin,service"] {
        let refused = place.put(&api.client(api.token("ann", scopes)), 1).await;
        assert_problem(&refused, 403, scopes);
        assert_eq!(refused.body["type"], "/problems/service-scope-required");
    }
    place.put(&api.client(api.token("ann", "service")), 1).await.expect(201);
}

#[tokio::test]
async fn a_capacity_of_a_tenant_whose_name_is_no_uuid_is_a_services_matter() {
    let api = TenantClient::open();
    let place = CapacityFixture::new(&api);
    let token = |scopes: &str| api.harness.token_of("plain", "ann", scopes);
    assert_problem(&place.put(&api.client(token("")), 1).await, 403, "another tenant");
    let service = api.client(token("service"));
    let session = place.take(&service, 1).await;
    service.get(&path_of(&session)).await.expect(200);
}
