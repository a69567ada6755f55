//! Heartbeats of live sessions cost PostgreSQL nothing, at whichever node the heartbeats arrive.

use seatkeeper_testbed::postgres::Postgres;
use seatkeeper_testbed::redis::Redis;
use serde_json::{Value, json};

use crate::harness::Harness;

/// Seats of the large license. More than eight sessions make a large pool.
const SEATS: u32 = 20;

/// Returns the number of statements on the session alone, from the parameters in PostgreSQL's log.
fn statements(postgres: &Postgres, session: &Value) -> usize {
    let id = session.as_str().expect("an id");
    postgres.log().matches(&format!("$1 = '{id}'")).count()
}

#[tokio::test]
async fn the_first_heartbeat_at_each_node_costs_no_statement_of_postgresql() {
    let postgres = Postgres::start_with(&["fsync = off", "log_statement = 'all'"]);
    let (redis, ledger) = (Redis::start(), postgres.url(&postgres.add_database()));
    let harness = Harness::open_with(&[("REGISTRY_URL", &redis.url()), ("LEDGER_URL", &ledger)]);
    let (client, nodes) = (harness.client("crowd"), harness.doors().all().len());
    let large = harness.license(SEATS).await;
    let mut sessions = Vec::new();
    for machine in 0..SEATS {
        let small = harness.license(1).await;
        for license in [&small, &large] {
            let seat = client.acquire(&license["license_key"], &format!("machine-{machine}")).await;
            let session = seat.expect(201)["session_id"].clone();
            // Consecutive requests go to consecutive nodes.
            for _ in 0..nodes {
                client.heartbeat(&session).await.expect(200);
            }
            sessions.push(session);
        }
    }
    let each: Vec<_> = sessions.iter().map(|session| statements(&postgres, session)).collect();
    assert!(each.iter().all(|statements| *statements == 0), "statements on each session: {each:?}");

    // The control: an id that no node has seen costs a statement at every node.
    let unknown = json!("01981f3c-0000-8000-8000-000000000000");
    for _ in 0..nodes {
        client.heartbeat(&unknown).await.expect(404);
    }
    assert_eq!(statements(&postgres, &unknown), nodes);
}
