//! No answer tells of a session before the ledger has committed the session, because a crash could still undo
//! it.

use std::sync::Arc;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};

use crate::http::capacities::place::{CapacityFixture, path_of};
use crate::http::exchange::assert_problem;
use crate::http::tenant_client::TenantClient;
use crate::http::until::until;

#[tokio::test]
async fn while_the_ledger_stands_still_no_session_is_created_found_or_ended_and_then_there_is_one() {
    let mut api = TenantClient::open_with(&[("LEDGER_COMMIT_TIMEOUT_MILLISECONDS", "300")]);
    let (place, other, ann) = (CapacityFixture::new(&api), CapacityFixture::new(&api), api.service("ann"));
    let session = other.take(&ann, 1).await;
    // A second writer holds the write lock of the database.
    let options = SqliteConnectOptions::new().filename(api.harness.path("ledger.db"));
    let mut writer = options.connect().await.expect("the ledger's file");
    sqlx::query("BEGIN IMMEDIATE").execute(&mut writer).await.expect("the write lock");
    for _ in 0..2 {
        assert_problem(&place.put(&ann, 2).await, 503, "created, or existing");
        assert_problem(&ann.get(&place.search()).await, 503, "found");
        assert_problem(&ann.delete(&path_of(&session)).await, 503, "ended");
    }
    sqlx::query("ROLLBACK").execute(&mut writer).await.expect("the lock given back");
    writer.close().await.expect("a connection that closes");
    // The unanswered claim took the seat, and a retry finds the session.
    let answer = until("the ledger has caught up", async || {
        let answer = place.put(&ann, 2).await;
        if answer.status == 503 { Err(answer.body.to_string()) } else { Ok(answer) }
    })
    .await;
    let stands = answer.expect(200)["sessionId"].clone();
    let found = place.found(&ann).await;
    assert_eq!((found.len(), &found[0]["sessionId"]), (1, &stands));
    assert_problem(&ann.delete(&path_of(&session)).await, 404, "the first of them ended it");
    // The server has logged errors, as expected, so the test bypasses the check of the log.
    let harness = Arc::get_mut(&mut api.harness).expect("a server of this test alone");
    harness.kill();
    harness.prove();
}
