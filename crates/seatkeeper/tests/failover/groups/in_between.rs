//! Requests about groups with a fault or another request between their steps: a test holds a bucket of the registry.

use seatkeeper_core::SessionId;
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};

use super::{DEVICES, GROUPS, LASTING, clients, create, device, join, subscribed};
use crate::failover::support::{Nodes, answered};
use crate::harness::{Answer, Client};
use crate::until::until;

/// Holds a bucket against every change until the end of the transaction.
const HOLD_BUCKET: &str = "SELECT 1 FROM registry.buckets WHERE bucket = $1 FOR UPDATE";

/// Counts the statements of nodes that wait for a lock.
const WAITING: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'";

/// A bucket of the registry in PostgreSQL that is held against every change.
struct HeldBucket(PgConnection);

impl HeldBucket {
    /// Holds the bucket of a session.
    async fn hold(nodes: &Nodes, session: &Value) -> Self {
        let session: SessionId = session.as_str().and_then(|id| id.parse().ok()).expect("an id");
        let bucket = i16::try_from(session.bucket().number()).expect("a small number");
        let mut database = PgConnection::connect(nodes.ledger_url()).await.expect("a connection");
        sqlx::raw_sql("BEGIN").execute(&mut database).await.expect("a transaction");
        sqlx::query(HOLD_BUCKET).bind(bucket).execute(&mut database).await.expect("the bucket's lock");
        Self(database)
    }

    /// Sends two requests to different nodes, the second while the first waits for the bucket, and lets the requests go
    /// on in order. A single node would queue the second request before the database.
    async fn in_order(
        self,
        nodes: &Nodes,
        first: impl Future<Output = Answer>,
        second: impl Future<Output = Answer>,
    ) -> (Answer, Answer) {
        let second = async {
            waiting(nodes, 1).await;
            second.await
        };
        let go_on = async {
            waiting(nodes, 2).await;
            self.give_up().await;
        };
        let (first, second, ()) = tokio::join!(first, second, go_on);
        (first, second)
    }

    async fn give_up(mut self) {
        sqlx::raw_sql("ROLLBACK").execute(&mut self.0).await.expect("the end of the transaction");
    }
}

/// Waits until at least `count` statements of the nodes wait for a lock.
async fn waiting(nodes: &Nodes, count: i64) {
    let mut database = PgConnection::connect(nodes.ledger_url()).await.expect("a connection");
    until("requests wait for the bucket", async || {
        let waiting: i64 = sqlx::query_scalar(WAITING).fetch_one(&mut database).await.expect("a number");
        if waiting >= count { Ok(()) } else { Err(format!("{waiting} wait")) }
    })
    .await;
}

async fn assert_no_screen(client: &Client) {
    assert_eq!(client.get(DEVICES).await.expect(200)["items"], json!([]));
}

fn leaving(group: &Value, member: &Value) -> Value {
    json!({ "group_id": group, "session_id": member })
}

/// The last member has ended, and the screen has not: the bucket of the screen answers too late.
#[tokio::test]
async fn a_repeated_leave_gives_the_screen_back() {
    let nodes = Nodes::in_ledger_with(1, LASTING);
    subscribed(&nodes).await;
    let ann = &clients(&nodes, "ann")[0];
    let host = create(ann, "tv").await;
    let held = HeldBucket::hold(&nodes, &host["group_id"]).await;
    let (path, ask) = (format!("{GROUPS}/leave"), leaving(&host["group_id"], &host["session_id"]));
    ann.post(&path, ask.clone()).await.expect(503);
    held.give_up().await;
    answered(async || ann.post(&path, ask.clone()).await).await.expect(404);
    assert_no_screen(ann).await;
    nodes.close();
}

/// A creation looks at the session before the claim, and the session ends in between.
#[tokio::test]
async fn a_session_that_ends_beside_the_creation_becomes_no_screen() {
    let nodes = Nodes::in_ledger_with(2, LASTING);
    subscribed(&nodes).await;
    let ann = clients(&nodes, "ann");
    let mut ask = device("tv");
    ask["session_id"] = ann[0].post(DEVICES, device("tv")).await.expect(201)["session_id"].clone();
    let held = HeldBucket::hold(&nodes, &ask["session_id"]).await;
    let session = format!("{DEVICES}/{}", ask["session_id"].as_str().expect("an id"));
    let (revoked, created) = held.in_order(&nodes, ann[0].delete(&session), ann[1].post(GROUPS, ask)).await;
    revoked.expect(204);
    created.expect(404);
    assert_no_screen(&ann[0]).await;
    nodes.close();
}

/// After a guest's own leave the join code still counts: the subscriber must hear of the failed removal.
#[tokio::test]
async fn a_removal_that_removed_nobody_finds_no_session() {
    let nodes = Nodes::in_ledger_with(2, LASTING);
    subscribed(&nodes).await;
    let (ann, bob) = (&clients(&nodes, "ann")[1], &clients(&nodes, "bob")[0]);
    let host = create(ann, "tv").await;
    let guest = join(bob, &host["join_code"], "phone", 201).await;
    let held = HeldBucket::hold(&nodes, &guest["session_id"]).await;
    let (path, ask) = (format!("{GROUPS}/leave"), leaving(&host["group_id"], &guest["session_id"]));
    let (left, removed) =
        held.in_order(&nodes, bob.post(&path, ask.clone()), ann.post(&path, ask.clone())).await;
    left.expect(204);
    removed.expect(404);
    join(bob, &host["join_code"], "phone", 201).await;
    nodes.close();
}
