//! Tests of `DELETE /api/v1/licenses/sessions/{session_id}`.

use serde_json::json;

use crate::http::exchange::assert_problem;
use crate::http::tenant_client::TenantClient;

#[tokio::test]
async fn a_seat_that_is_given_back_is_free_at_once() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1 })).await;
    let session = api.seat(&license, "ann", "laptop-1").await;
    let released = api.user("ann").release(&session).await;
    assert_eq!((released.status, released.body), (204, json!(null)));
    api.seat(&license, "bob", "laptop-2").await;
}

#[tokio::test]
async fn a_seat_can_be_given_back_once() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1 })).await;
    let session = api.seat(&license, "ann", "laptop-1").await;
    api.user("ann").release(&session).await.expect(204);
    assert_problem(&api.user("ann").release(&session).await, 404, "released");
}

#[tokio::test]
async fn nobody_but_its_users_and_admins_gives_a_seat_back() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1 })).await;
    let session = api.seat(&license, "ann", "laptop-1").await;
    api.user("bob").release(&session).await.expect(404);
    api.user("ann").heartbeat(&session).await.expect(200);
    api.admin().release(&session).await.expect(204);
}

#[tokio::test]
async fn a_released_session_does_not_come_back() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1 })).await;
    let session = api.seat(&license, "ann", "laptop-1").await;
    api.user("ann").release(&session).await.expect(204);
    let anew = api.seat(&license, "ann", "laptop-1").await;
    assert_ne!(anew, session);
    assert_eq!(api.user("ann").heartbeat(&session).await.expect(410)["reason"], "released");
}
