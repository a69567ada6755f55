//! Capacities after a kill and a restart of the server.

use super::place::{Place, path_of};
use crate::http::desk::Desk;

#[tokio::test]
async fn a_restart_neither_lengthens_nor_shortens_a_session() {
    let mut desk = Desk::open_with(&[]);
    let (place, ended, ann) = (Place::of(&desk), Place::of(&desk), "ann");
    let mut created = place.put(&desk.service(ann), 2).await.expect(201);
    let released = ended.take(&desk.service(ann), 1).await;
    desk.service(ann).delete(&path_of(&released)).await.expect(204);
    let gone = desk.service(ann).get(&path_of(&released)).await.expect(200);
    created["status"] = "existing".into();
    for _ in 0..2 {
        desk.restart();
        assert_eq!(place.put(&desk.service(ann), 1).await.expect(200), created);
        let read = desk.service(ann).get(&path_of(&created["sessionId"])).await.expect(200);
        assert_eq!(read["sessionEndUtc"], created["sessionEndUtc"]);
        assert_eq!(desk.service(ann).get(&path_of(&released)).await.expect(200), gone);
    }
}

#[tokio::test]
async fn a_session_whose_time_ran_out_while_there_was_no_server_is_over() {
    let mut desk = Desk::open_with(&[("CAPACITIES_TTL_SECONDS", "2")]);
    let place = Place::of(&desk);
    let created = place.put(&desk.service("ann"), 2).await.expect(201);
    let house = std::sync::Arc::get_mut(&mut desk.house).expect("a server of this test alone");
    house.kill();
    tokio::time::sleep(std::time::Duration::from_millis(2_050)).await;
    house.start();
    assert!(place.found(&desk.service("ann")).await.is_empty());
    let read = desk.service("ann").get(&path_of(&created["sessionId"])).await.expect(200);
    assert_eq!(read["endReason"], "expired");
    assert_eq!(read["sessionEndUtc"], created["sessionEndUtc"]);
}
