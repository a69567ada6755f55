//! An event that the database of the ledger refuses holds up its own bucket, and no other bucket.

use std::sync::Arc;

use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

use crate::harness::Client;
use crate::http::exchange::assert_problem;
use crate::http::tenant_client::TenantClient;
use crate::http::until::until;

/// Licenses beside the license whose records are refused. Few of them share its bucket, of 256.
const OTHERS: usize = 8;

async fn execute(file: &std::path::Path, statement: String) {
    let mut database = SqliteConnectOptions::new().filename(file).connect().await.expect("the ledger's file");
    sqlx::query(AssertSqlSafe(statement)).execute(&mut database).await.expect("a statement");
    database.close().await.expect("a connection that closes");
}

async fn acquire(client: &Client, license: &Value) -> u16 {
    client.acquire(&license["license_key"], "m1").await.status
}

#[tokio::test]
async fn a_record_that_the_database_refuses_holds_up_its_bucket_alone() {
    let mut api = TenantClient::open_with(&[("LEDGER_COMMIT_TIMEOUT_MILLISECONDS", "1000")]);
    let (ann, refused) = (api.user("ann"), api.license(json!({ "max_seats": 2 })).await);
    let file = api.harness.path("ledger.db");
    let pool = refused["license_id"].as_str().expect("an id").to_owned();
    let trigger = format!(
        "CREATE TRIGGER refuses BEFORE INSERT ON audit_log WHEN NEW.pool_id = '{pool}' AND NEW.action = 'admitted' \
         BEGIN SELECT RAISE(ABORT, 'a text that cannot be stored'); END"
    );
    execute(&file, trigger).await;
    assert_problem(&ann.acquire(&refused["license_key"], "m1").await, 503, "a record that is refused");
    let mut served = 0;
    for _ in 0..OTHERS {
        let other = api.license(json!({ "max_seats": 1 })).await;
        served += usize::from(acquire(&ann, &other).await == 201);
    }
    assert!(served >= OTHERS - 1, "{served} of {OTHERS} other licenses are served");
    execute(&file, "DROP TRIGGER refuses".to_owned()).await;
    // The record comes by itself.
    until("the record is accepted", async || match acquire(&ann, &refused).await {
        200 => Ok(()),
        status => Err(status.to_string()),
    })
    .await;
    // The server has logged errors, as expected, so the test bypasses the check of the log.
    let harness = Arc::get_mut(&mut api.harness).expect("a server of this test alone");
    harness.kill();
    harness.prove();
}
