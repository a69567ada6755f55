//! Nodes that share nothing but a PostgreSQL.

use std::time::Duration;

use futures_util::future::join_all;
use seatkeeper_testbed::postgres::{self, Postgres, Stop};
use serde_json::json;
use uuid::Uuid;

use super::support::{Nodes, answered, renewed, seat};
use crate::house::{Client, House, run};

const DEVICES: &str = "/api/v1/devices/sessions";
const CAPACITIES: &str = "/api/v1/capacities/sessions";

#[tokio::test]
async fn nodes_over_the_ledger_alone_serve_all_kinds_and_each_goes_on_for_the_others() {
    let mut nodes = Nodes::in_ledger(3);
    let (license, clients) = (nodes.houses[0].license(4).await, nodes.clients());
    let ann = seat(&clients[0], &license, "ann").await;
    let key = &license["license_key"];

    let rush = (0..12).map(|number| {
        let client = &clients[number % clients.len()];
        async move { client.acquire(key, &format!("machine-{number}")).await.status }
    });
    let mut statuses = join_all(rush).await;
    statuses.sort_unstable();
    assert_eq!(statuses, [[201; 3].as_slice(), &[403; 9]].concat());

    let watch = async |client: &Client, device: &str| {
        let ask = json!({ "device_id": device, "device_type": "tv", "device_name": device });
        client.post(DEVICES, ask).await.expect(201)["session_id"].clone()
    };
    let tv = watch(&clients[0], "tv").await;
    let phone = watch(&clients[1], "phone").await;
    let heartbeat = format!("{DEVICES}/heartbeat");
    clients[2].post(&heartbeat, json!({ "session_id": tv })).await.expect(410);
    clients[2].post(&heartbeat, json!({ "session_id": phone })).await.expect(204);

    let tenant = Uuid::new_v4();
    let token = nodes.houses[0].token_of(&tenant.to_string(), "desk", "");
    let capacity = json!({
        "tenantObjectId": tenant, "userObjectId": tenant, "capacityId": tenant, "sessionKind": 1,
    });
    let desks: Vec<_> = clients.iter().map(|client| Client::new(client.url(), token.clone())).collect();
    let taken = desks[0].put(CAPACITIES, capacity.clone()).await.expect(201);
    assert_eq!(desks[1].put(CAPACITIES, capacity).await.expect(200)["sessionId"], taken["sessionId"]);

    // An admin names a session, and not its kind.
    for session in [&taken["sessionId"], &phone, &ann] {
        let path = format!("/api/v1/admin/sessions/{}", session.as_str().expect("a session id"));
        let tenant = if session == &taken["sessionId"] { tenant.to_string() } else { "default".to_owned() };
        let admin = Client::new(clients[2].url(), nodes.houses[2].token_of(&tenant, "ops", "admin"));
        admin.delete(&path).await.expect(204);
        admin.delete(&path).await.expect(404);
    }
    clients[1].heartbeat(&ann).await.expect(410);
    let bob = seat(&clients[0], &license, "bob").await;

    nodes.houses[0].kill();
    clients[1].get("/readyz").await.expect(200);
    renewed(&clients[1], &bob).await;
    clients[2].acquire(key, "carl").await.expect(403);
    clients[2].release(&bob).await.expect(204);
    clients[1].acquire(key, "carl").await.expect(201);
    nodes.houses[0].start();
    nodes.close();
}

#[tokio::test]
async fn a_postgresql_that_crashes_takes_no_seat_along() {
    let server = Postgres::start();
    let database = server.url("postgres");
    let mut node = House::open_with(&[("REGISTRY_URL", &database), ("LEDGER_URL", &database)]);
    let (license, client) = (node.license(2).await, node.client("crowd"));
    let ann = seat(&client, &license, "ann").await;
    // Longer than anybody waits before he counts a registry as out of reach.
    for away in [Duration::ZERO, Duration::from_secs(5)] {
        server.stop(Stop::Immediate);
        client.acquire(&license["license_key"], "bob").await.expect(503);
        tokio::time::sleep(away).await;
        if away > Duration::ZERO {
            client.get("/readyz").await.expect(503);
        }
        server.start_again();
        let bob = answered(async || client.acquire(&license["license_key"], "bob").await).await;
        assert!([200, 201].contains(&bob.status), "{:#}", bob.body);
        client.heartbeat(&ann).await.expect(200);
        client.acquire(&license["license_key"], "carl").await.expect(403);
        client.release(&bob.body["session_id"]).await.expect(204);
    }
    node.stop();
    node.prove();
}

#[test]
fn live_sessions_are_in_no_other_postgresql_than_the_ledger() {
    let (ledger, other) = (postgres::database(), postgres::database());
    for ledger in [Some(ledger.url()), None] {
        let other = other.url();
        let mut args = vec!["serve", "--registry", &other, "--listen", "127.0.0.1:0"];
        args.extend(ledger.iter().flat_map(|url| ["--ledger", url]));
        let output = run(&args);
        assert!(!output.status.success());
        assert!(output.stderr.contains("the ledger's own database"), "{}", output.stderr);
    }
}
