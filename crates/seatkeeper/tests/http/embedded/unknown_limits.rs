//! When the ledger cannot look up a subscriber's plan, the last known limit applies, and no session is
//! evicted.

use serde_json::json;
use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};

use crate::http::devices::player::{Player, live, path};
use crate::http::exchange::assert_problem;
use crate::http::tenant_client::TenantClient;

/// Starts a server that looks up plans for each claim, without a cache.
fn open() -> TenantClient {
    TenantClient::open_with(&[("DEVICES_PLAN_CACHE_SECONDS", "0")])
}

/// Runs a statement directly on the server's database file.
pub(super) async fn tamper(api: &TenantClient, statement: &'static str) {
    let options = SqliteConnectOptions::new().filename(api.harness.path("ledger.db"));
    let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
    sqlx::query(statement).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

async fn hide_plans(api: &TenantClient) {
    tamper(api, "ALTER TABLE plans RENAME TO plans_hidden").await;
}

async fn show_plans(api: &TenantClient) {
    tamper(api, "ALTER TABLE plans_hidden RENAME TO plans").await;
}

#[tokio::test]
async fn a_full_pool_denies_although_its_plan_evicts_and_evicts_again_once_the_plan_is_known() {
    let api = open();
    api.subscription("ann", "standard").await;
    let (tv, phone) = (Player::new(&api, "ann", "tv"), Player::new(&api, "ann", "phone"));
    let (first, second) = (tv.watch().await, phone.watch().await);
    hide_plans(&api).await;

    let tablet = Player::new(&api, "ann", "tablet");
    for ask in [json!({}), json!({ "replace_session_id": first })] {
        let full = tablet.ask_with(ask).await;
        assert_problem(&full, 403, "full, of an unknown plan");
        assert_eq!((&full.body["device_limit"], &full.body["devices_in_use"]), (&json!(2), &json!(2)));
        assert!(full.body["detail"].as_str().unwrap().contains("cannot be looked up"), "{}", full.body);
        assert_eq!(full.body["sessions"].as_array().unwrap().len(), 2);
    }
    // Admitted devices stay.
    tv.beat(&first).await.expect(204);
    phone.beat(&second).await.expect(204);
    let again = phone.ask_with(json!({ "session_id": second })).await.expect(200);
    assert_eq!(again["outcome"], "refreshed");
    assert_eq!(phone.ask().await.expect(201)["evicted_session_ids"], json!([]));
    tv.beat(&first).await.expect(204);
    // A screen that its user released becomes free.
    tv.client.delete(&path(&first)).await.expect(204);
    let taken = tablet.ask().await.expect(201);
    assert_eq!((&taken["device_limit"], &taken["devices_in_use"]), (&json!(2), &json!(2)));

    show_plans(&api).await;
    let evicting = tv.ask().await.expect(201);
    assert_eq!(evicting["outcome"], "admitted_with_eviction");
    assert_eq!(live(&tv.client).await.len(), 2);
}

#[tokio::test]
async fn of_a_pool_that_nothing_was_known_of_the_limit_is_one() {
    let mut api = open();
    api.subscription("ann", "premium").await;
    api.restart();
    hide_plans(&api).await;
    let (tv, phone) = (Player::new(&api, "ann", "tv"), Player::new(&api, "ann", "phone"));
    let taken = tv.ask().await.expect(201);
    assert_eq!(taken["device_limit"], 1);
    let full = phone.ask().await.expect(403);
    assert_eq!((&full["device_limit"], &full["devices_in_use"]), (&json!(1), &json!(1)));
    tv.beat(&taken["session_id"]).await.expect(204);
    show_plans(&api).await;
    let known = phone.ask().await.expect(201);
    assert_eq!((&known["device_limit"], &known["devices_in_use"]), (&json!(4), &json!(2)));
}

#[tokio::test]
async fn what_was_looked_up_lately_counts_while_the_ledger_cannot_say() {
    let api = TenantClient::open_with(&[("DEVICES_PLAN_CACHE_SECONDS", "30")]);
    let (tv, phone) = (Player::new(&api, "ann", "tv"), Player::new(&api, "ann", "phone"));
    let first = tv.watch().await;
    hide_plans(&api).await;
    assert_eq!(phone.ask().await.expect(201)["evicted_session_ids"], json!([first]));
    show_plans(&api).await;
}
