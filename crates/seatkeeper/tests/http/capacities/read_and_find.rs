//! Tests of `GET /api/v1/capacities/sessions/{session_id}` and `GET /api/v1/capacities/sessions`.

use serde_json::json;

use super::place::{CapacityFixture, path_of, timeless};
use crate::http::exchange::assert_problem;
use crate::http::tenant_client::{CAPACITIES, TenantClient, session_path};

#[tokio::test]
async fn a_live_session_is_read_and_found_as_it_was_created() {
    let api = TenantClient::open();
    let (place, ann) = (CapacityFixture::new(&api), api.service("ann"));
    let mut created = place.put(&ann, 3).await.expect(201);
    created.as_object_mut().unwrap().remove("status");
    assert_eq!(ann.get(&path_of(&created["sessionId"])).await.expect(200), created);
    assert_eq!(place.found(&ann).await, [created.clone()]);
    // Without `tenantObjectId`, the search uses the token's tenant.
    let path = format!("{CAPACITIES}?userObjectId={}&capacityId={}", place.user, place.capacity);
    assert_eq!(ann.get(&path).await.expect(200)["items"], json!([created]));
}

#[tokio::test]
async fn an_ended_session_is_read_with_its_end_and_no_longer_found() {
    let api = TenantClient::open();
    let (place, ann) = (CapacityFixture::new(&api), api.service("ann"));
    let session = place.take(&ann, 3).await;
    ann.delete(&path_of(&session)).await.expect(204);
    let (read, [start, end]) = timeless(ann.get(&path_of(&session)).await.expect(200));
    let mut expected = place.shown(&session, 3);
    expected["isActive"] = false.into();
    expected["endReason"] = "released".into();
    assert_eq!(read, expected);
    assert!(start <= end && end - start < chrono::TimeDelta::days(1), "{start} to {end}");
    assert_eq!(place.found(&ann).await, Vec::<serde_json::Value>::new());
}

#[tokio::test]
async fn an_operators_end_is_read_with_its_reason() {
    let api = TenantClient::open();
    let (one, other, ann) = (CapacityFixture::new(&api), CapacityFixture::new(&api), api.service("ann"));
    let (first, second) = (one.take(&ann, 1).await, other.take(&ann, 1).await);
    let admin = api.admin();
    admin.delete(&format!("/api/v1/admin/sessions/{}", first.as_str().unwrap())).await.expect(204);
    // The spelling of the ids does not matter.
    let pool = other.pool().to_uppercase();
    let path = format!("/api/v1/admin/sessions?pool_kind=capacity&pool={pool}");
    assert_eq!(admin.delete(&path).await.expect(200)["ended"], 1);
    for session in [first, second] {
        assert_eq!(ann.get(&path_of(&session)).await.expect(200)["endReason"], "revoked");
    }
}

#[tokio::test]
async fn whoever_took_it_and_the_admin_see_a_session_and_nobody_else() {
    let api = TenantClient::open();
    let place = CapacityFixture::new(&api);
    let session = place.take(&api.service("ann"), 2).await;
    // A service that is told `existing` gains no access to the session.
    place.put(&api.service("bob"), 1).await.expect(200);
    for reader in [api.service("ann"), api.admin()] {
        reader.get(&path_of(&session)).await.expect(200);
        assert_eq!(place.found(&reader).await.len(), 1);
    }
    for stranger in
        [api.service("bob"), api.service("cid"), api.neighbour().user("ann"), api.neighbour().admin()]
    {
        assert_problem(&stranger.get(&path_of(&session)).await, 404, "someone else");
        assert!(place.found(&stranger).await.is_empty());
    }
}

#[tokio::test]
async fn each_kind_of_session_is_found_at_its_own_door_alone() {
    let api = TenantClient::open();
    let (place, ann) = (CapacityFixture::new(&api), api.service("ann"));
    let license = api.license(json!({ "max_seats": 1 })).await;
    let (seat, session) = (api.seat(&license, "ann", "laptop-1").await, place.take(&ann, 1).await);
    let (capacities, licenses) = (path_of(&seat), session_path(&session));
    for client in [&ann, &api.admin()] {
        for wrong in [&capacities, &licenses] {
            assert_problem(&client.get(wrong).await, 404, wrong);
            assert_problem(&client.delete(wrong).await, 404, wrong);
        }
        assert_problem(&client.heartbeat(&session).await, 404, "no heartbeat keeps a capacity");
    }
    ann.delete(&session_path(&seat)).await.expect(204);
    ann.delete(&path_of(&session)).await.expect(204);
    // The same holds for ended sessions.
    for wrong in [&capacities, &licenses] {
        assert_problem(&ann.get(wrong).await, 404, wrong);
    }
}

#[tokio::test]
async fn admins_find_capacities_among_all_sessions() {
    let api = TenantClient::open();
    let place = CapacityFixture::new(&api);
    let session = place.take(&api.service("ann"), 3).await;
    let path = format!("/api/v1/admin/sessions?pool_kind=capacity&pool={}&live=true", place.pool());
    let found = api.admin().get(&path).await.expect(200);
    let shown = &found["items"][0];
    assert_eq!((&shown["session_id"], &shown["tier"]), (&session, &json!(3)));
    assert_eq!((&shown["holder"], &shown["user"]), (&json!(place.user), &json!("ann")));
    assert_eq!((shown.get("user_tenant"), &shown["ip"]), (None, &json!("127.0.0.1")));
}
