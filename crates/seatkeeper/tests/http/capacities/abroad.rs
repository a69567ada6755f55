//! Services that take capacities for users of other tenants.

use serde_json::{Value, json};
use uuid::Uuid;

use super::place::{CapacityFixture, path_of};
use crate::harness::{Answer, Client};
use crate::http::books::Books;
use crate::http::exchange::{assert_problem, comparable};
use crate::http::tenant_client::{AUDIT, SESSIONS, TenantClient, text};

/// Sends every request about a session but PUT. The answers are identical for foreign and for missing
/// sessions.
async fn asked(
    client: &Client,
    place: &CapacityFixture,
    session: &str,
) -> [(u16, reqwest::header::HeaderMap, String); 3] {
    let path = path_of(&json!(session));
    let answers: [Answer; 3] =
        [client.get(&path).await, client.delete(&path).await, client.get(&place.search()).await];
    assert_eq!(answers.each_ref().map(|answer| answer.status), [404, 404, 200]);
    answers.each_ref().map(comparable)
}

#[tokio::test]
async fn a_service_finds_reads_and_ends_what_it_acquired_in_another_tenant() {
    let home = TenantClient::open();
    let there = home.neighbour();
    let service = home.client(home.token("meter", "service"));
    let place = CapacityFixture::new(&there);
    let mut created = place.put(&service, 2).await.expect(201);
    assert_eq!(created["tenantObjectId"], json!(there.tenant));
    created.as_object_mut().unwrap().remove("status");
    let session = &created["sessionId"];
    assert_eq!(service.get(&path_of(session)).await.expect(200), created);
    assert_eq!(place.found(&service).await, [created.clone()]);
    service.delete(&path_of(session)).await.expect(204);
    // An ended session can still be read.
    assert_eq!(service.get(&path_of(session)).await.expect(200)["endReason"], "released");
}

#[tokio::test]
async fn the_tenants_own_admin_sees_who_took_it_and_may_end_it() {
    let home = TenantClient::open();
    let there = home.neighbour();
    let service = home.client(home.token("meter", "service"));
    let place = CapacityFixture::new(&there);
    let session = place.take(&service, 2).await;
    let admin = there.admin();
    admin.get(&path_of(&session)).await.expect(200);
    assert_eq!(place.found(&admin).await.len(), 1);
    let found = admin.get(&format!("{SESSIONS}?pool={}", place.pool())).await.expect(200);
    let shown = &found["items"][0];
    assert_eq!((&shown["user"], &shown["user_tenant"]), (&json!("meter"), &json!(home.tenant)));

    // A UUID has several spellings.
    let [usual, simple] = [home.tenant.clone(), home.tenant.replace('-', "")];
    let filter = |tenant: &str| format!("user=meter&user_tenant={tenant}");
    for (filter, items) in [("user=meter", 0), (&*filter(&usual), 1), (&*filter(&simple), 1)] {
        let found = admin.get(&format!("{SESSIONS}?{filter}")).await.expect(200);
        assert_eq!(found["items"].as_array().unwrap().len(), items, "{filter}");
    }

    service.delete(&path_of(&session)).await.expect(204);
    let again = place.take(&service, 2).await;
    admin.delete(&path_of(&again)).await.expect(204);
    let page = admin.get(&format!("{AUDIT}?pool={}", place.pool())).await.expect(200);
    let actors: Vec<_> = page["items"].as_array().unwrap().iter().map(actor_of).collect();
    let (away, own) = (json!(["user:meter", home.tenant]), json!(["user:ops", null]));
    assert_eq!(actors, [&own, &away, &away, &away].map(Clone::clone));
    // The audit log of the service's own tenant has no record of the session.
    let own_page = home.admin().get(&format!("{AUDIT}?pool={}", place.pool())).await.expect(200);
    assert_eq!(own_page["items"], json!([]));
}

fn actor_of(record: &Value) -> Value {
    json!([record["actor"], record["actor_tenant"]])
}

#[tokio::test]
async fn to_a_service_what_others_took_there_and_what_is_not_there_look_the_same_and_nothing_changes() {
    let home = TenantClient::open();
    let (other, there) = (home.neighbour(), home.neighbour());
    // The services have equal names, so that only the tenant differs.
    let service_of = |api: &TenantClient, scopes| api.client(api.token("meter", scopes));
    let takers = [service_of(&other, "service"), service_of(&there, "service"), service_of(&there, "admin")];
    let mut taken = Vec::new();
    for taker in &takers {
        let place = CapacityFixture::new(&there);
        let session = place.take(taker, 2).await;
        taken.push((place, text(&session).to_owned()));
    }
    let before = Books::new(&there).await;
    let nothing = CapacityFixture::new(&there);
    for scopes in ["service", "admin service", "admin", ""] {
        let stranger = service_of(&home, scopes);
        for (place, session) in &taken {
            let real = asked(&stranger, place, session).await;
            let near = Uuid::from_u128(Uuid::try_parse(session).unwrap().as_u128() ^ 1).to_string();
            for missing in [Uuid::new_v4().to_string(), near] {
                assert_eq!(asked(&stranger, &nothing, &missing).await, real, "{scopes}");
            }
        }
    }
    assert_eq!(Books::new(&there).await, before);
}

#[tokio::test]
async fn a_service_that_is_told_of_anothers_session_has_no_business_with_it() {
    let home = TenantClient::open();
    let there = home.neighbour();
    let place = CapacityFixture::new(&there);
    let session = place.take(&there.service("ann"), 2).await;
    let service = home.client(home.token("meter", "service"));
    let told = place.put(&service, 2).await.expect(200);
    assert_eq!((&told["sessionId"], &told["status"]), (&session, &"existing".into()));
    assert_problem(&service.get(&path_of(&session)).await, 404, "read");
    assert_problem(&service.delete(&path_of(&session)).await, 404, "end");
    assert_eq!(place.found(&there.service("ann")).await.len(), 1);
}

#[tokio::test]
async fn without_the_scope_a_service_has_no_business_there_any_more() {
    let home = TenantClient::open();
    let place = CapacityFixture::new(&home.neighbour());
    let session = place.take(&home.client(home.token("meter", "service")), 2).await;
    for scopes in ["", "admin"] {
        let stripped = home.client(home.token("meter", scopes));
        asked(&stripped, &place, text(&session)).await;
    }
    // Another service of the tenant has no access to the session.
    asked(&home.client(home.token("other", "service")), &place, text(&session)).await;
}
