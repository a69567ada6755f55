//! Tests of `DELETE /api/v1/capacities/sessions/{session_id}`.

use serde_json::json;

use super::place::{CapacityFixture, path_of};
use crate::http::exchange::assert_problem;
use crate::http::tenant_client::TenantClient;

#[tokio::test]
async fn a_session_can_be_ended_once_and_does_not_come_back() {
    let api = TenantClient::open();
    let (place, ann) = (CapacityFixture::new(&api), api.service("ann"));
    let session = place.take(&ann, 2).await;
    let released = ann.delete(&path_of(&session)).await;
    assert_eq!((released.status, released.body), (204, json!(null)));
    assert_problem(&ann.delete(&path_of(&session)).await, 404, "released");
    let anew = place.put(&ann, 1).await.expect(201);
    assert_eq!((&anew["status"], &anew["sessionKind"]), (&json!("created"), &json!(1)));
    assert_ne!(anew["sessionId"], session);
    assert_problem(&ann.delete(&path_of(&session)).await, 404, "another stands there");
    assert_eq!(place.found(&ann).await.len(), 1);
}

#[tokio::test]
async fn a_session_that_was_upgraded_cannot_be_ended_and_the_new_one_can() {
    let api = TenantClient::open();
    let (place, ann) = (CapacityFixture::new(&api), api.service("ann"));
    let (old, new) = (place.take(&ann, 1).await, place.take(&ann, 2).await);
    assert_problem(&ann.delete(&path_of(&old)).await, 404, "upgraded");
    assert_eq!(place.found(&ann).await.len(), 1);
    ann.delete(&path_of(&new)).await.expect(204);
}

#[tokio::test]
async fn nobody_but_who_took_it_and_admins_ends_a_session() {
    let api = TenantClient::open();
    let place = CapacityFixture::new(&api);
    let session = place.take(&api.service("ann"), 2).await;
    place.put(&api.service("bob"), 1).await.expect(200);
    for stranger in [api.service("bob"), api.neighbour().admin(), api.client(api.token("bob", "service"))] {
        assert_problem(&stranger.delete(&path_of(&session)).await, 404, "someone else");
    }
    assert_eq!(place.found(&api.service("ann")).await.len(), 1);
    api.admin().delete(&path_of(&session)).await.expect(204);
}
