//! Tests of `DELETE /api/v1/admin/licenses/{license_id}`.

use serde_json::json;

use crate::http::exchange::assert_problem;
use crate::http::tenant_client::{TenantClient, license_path, session_path};

#[tokio::test]
async fn a_revoked_license_ends_its_sessions_and_stays_on_record() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1 })).await;
    let session = api.seat(&license, "ann", "laptop-1").await;
    api.admin().delete(&license_path(&license)).await.expect(204);
    assert_eq!(api.user("ann").heartbeat(&session).await.expect(410)["reason"], "entitlement_ended");
    api.user("ann").acquire(&license["license_key"], "laptop-1").await.expect(404);
    assert_eq!(api.license_now(&license).await["status"], "revoked");
    assert_eq!(api.user("ann").get(&session_path(&session)).await.expect(200)["status"], "ended");
}

#[tokio::test]
async fn a_license_may_be_revoked_twice() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1 })).await;
    for _ in 0..2 {
        api.admin().delete(&license_path(&license)).await.expect(204);
    }
    assert_eq!(api.license_now(&license).await["version"], 2);
}

#[tokio::test]
async fn an_unknown_license_cannot_be_revoked() {
    let api = TenantClient::open();
    let unknown = json!({ "license_id": "0193d2f4-0007-7000-8abc-0123456789ab" });
    assert_problem(&api.admin().delete(&license_path(&unknown)).await, 404, "unknown");
}
