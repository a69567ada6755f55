//! Tests of `DELETE /api/v1/admin/licenses/{license_id}`.

use serde_json::json;

use crate::http::desk::{Desk, license_path, session_path};
use crate::http::exchange::assert_problem;

#[tokio::test]
async fn a_revoked_license_ends_its_sessions_and_stays_on_record() {
    let desk = Desk::open();
    let license = desk.license(json!({ "max_seats": 1 })).await;
    let session = desk.seat(&license, "ann", "laptop-1").await;
    desk.admin().delete(&license_path(&license)).await.expect(204);
    assert_eq!(desk.user("ann").heartbeat(&session).await.expect(410)["reason"], "entitlement_ended");
    desk.user("ann").acquire(&license["license_key"], "laptop-1").await.expect(404);
    assert_eq!(desk.license_now(&license).await["status"], "revoked");
    assert_eq!(desk.user("ann").get(&session_path(&session)).await.expect(200)["status"], "ended");
}

#[tokio::test]
async fn a_license_may_be_revoked_twice() {
    let desk = Desk::open();
    let license = desk.license(json!({ "max_seats": 1 })).await;
    for _ in 0..2 {
        desk.admin().delete(&license_path(&license)).await.expect(204);
    }
    assert_eq!(desk.license_now(&license).await["version"], 2);
}

#[tokio::test]
async fn an_unknown_license_cannot_be_revoked() {
    let desk = Desk::open();
    let unknown = json!({ "license_id": "0193d2f4-0007-7000-8abc-0123456789ab" });
    assert_problem(&desk.admin().delete(&license_path(&unknown)).await, 404, "unknown");
}
