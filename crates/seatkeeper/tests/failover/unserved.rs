//! A node takes itself out while most buckets are not served, although the node reaches Redis and PostgreSQL.

use std::time::Instant;

use seatkeeper_testbed::redis::Redis;
use sqlx::{Connection as _, PgConnection};

use super::support::{Nodes, answered, renewed, seat, taken_out};

/// A node that died while it rebuilt every bucket: its locks are not over.
const LOCK_ALL: &str = "INSERT INTO bucket_locks (bucket, locked_by, locked_at, locked_until)
    SELECT bucket, gen_random_uuid(), now(), now() + interval '1 hour' FROM generate_series(0, 255) AS bucket
    ON CONFLICT (bucket) DO UPDATE SET locked_by = excluded.locked_by, locked_until = excluded.locked_until";

/// The time to the 503 counts from the answer of Redis to `FLUSHALL`: the node can know from then on.
#[tokio::test]
async fn a_node_is_not_ready_while_another_nodes_locks_keep_most_buckets_from_being_served() {
    let redis = Redis::start();
    let nodes = Nodes::over(&[redis.url()]);
    let (license, clients) = (nodes.harnesses[0].license(1).await, nodes.clients());
    let session = seat(&clients[0], &license, "ann").await;
    answered(async || clients[0].get("/readyz").await).await.expect(200);

    let mut database = PgConnection::connect(nodes.ledger_url()).await.expect("a connection");
    sqlx::query(LOCK_ALL).execute(&mut database).await.expect("locks");
    redis.ask::<()>(redis::cmd("FLUSHALL"));
    taken_out(&clients[0], Instant::now()).await;
    let unready = clients[0].get("/readyz").await.expect(503);
    assert!(unready.to_string().contains("more than half of the buckets are not served"), "{unready}");

    sqlx::query("DELETE FROM bucket_locks").execute(&mut database).await.expect("no locks");
    answered(async || clients[0].get("/readyz").await).await.expect(200);
    renewed(&clients[0], &session).await;
    drop(nodes.close());
}
