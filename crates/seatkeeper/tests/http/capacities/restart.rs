//! Capacities after a kill and a restart of the server.

use super::place::{CapacityFixture, path_of};
use crate::http::tenant_client::TenantClient;

#[tokio::test]
async fn a_restart_neither_lengthens_nor_shortens_a_session() {
    let mut api = TenantClient::open_with(&[]);
    let (place, ended, ann) = (CapacityFixture::new(&api), CapacityFixture::new(&api), "ann");
    let mut created = place.put(&api.service(ann), 2).await.expect(201);
    let released = ended.take(&api.service(ann), 1).await;
    api.service(ann).delete(&path_of(&released)).await.expect(204);
    let gone = api.service(ann).get(&path_of(&released)).await.expect(200);
    created["status"] = "existing".into();
    for _ in 0..2 {
        api.restart();
        assert_eq!(place.put(&api.service(ann), 1).await.expect(200), created);
        let read = api.service(ann).get(&path_of(&created["sessionId"])).await.expect(200);
        assert_eq!(read["sessionEndUtc"], created["sessionEndUtc"]);
        assert_eq!(api.service(ann).get(&path_of(&released)).await.expect(200), gone);
    }
}

#[tokio::test]
async fn a_session_whose_time_ran_out_while_there_was_no_server_is_over() {
    let mut api = TenantClient::open_with(&[("CAPACITIES_TTL_SECONDS", "2")]);
    let place = CapacityFixture::new(&api);
    let created = place.put(&api.service("ann"), 2).await.expect(201);
    let harness = std::sync::Arc::get_mut(&mut api.harness).expect("a server of this test alone");
    harness.kill();
    tokio::time::sleep(std::time::Duration::from_millis(2_050)).await;
    harness.start();
    assert!(place.found(&api.service("ann")).await.is_empty());
    let read = api.service("ann").get(&path_of(&created["sessionId"])).await.expect(200);
    assert_eq!(read["endReason"], "expired");
    assert_eq!(read["sessionEndUtc"], created["sessionEndUtc"]);
}
