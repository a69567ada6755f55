//! Tests of `/api/v1/admin/subscriptions`.

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use super::plans::limit_becomes;
use crate::http::devices::player::{after, clock, subscribe};
use crate::http::exchange::{assert_field, assert_problem, exchange};
use crate::http::shown::shown;
use crate::http::tenant_client::{AUDIT, PLANS, SUBSCRIPTIONS, TenantClient, subscription_path};
use crate::http::until::until;

async fn listed(api: &TenantClient, query: &str) -> Vec<Value> {
    let page = api.admin().get(&format!("{SUBSCRIPTIONS}{query}")).await.expect(200);
    page["items"].as_array().unwrap().iter().map(|item| item["user"].clone()).collect()
}

#[tokio::test]
async fn a_subscription_has_what_was_asked_for() {
    let api = TenantClient::open();
    let ask = json!({
        "user": "ann", "plan": "premium",
        "starts_at": "2026-01-01T00:00:00+01:00", "ends_at": "2099-01-01T00:00:00Z"
    });
    let made = api.admin().post(SUBSCRIPTIONS, ask).await.expect(201);
    assert_eq!(
        (&made["starts_at"], &made["ends_at"]),
        (&json!("2025-12-31T23:00:00.000Z"), &json!("2099-01-01T00:00:00.000Z"))
    );
    assert_eq!(
        shown(&made),
        json!({
            "subscription_id": "[id]",
            "user": "ann",
            "plan": "premium",
            "status": "active",
            "starts_at": "[time]",
            "ends_at": "[time]",
            "version": made["version"],
            "created_at": "[time]",
            "updated_at": "[time]"
        })
    );
    assert_eq!(api.admin().get(&subscription_path(&made)).await.expect(200), made);
    api.neighbour().admin().get(&subscription_path(&made)).await.expect(404);
}

#[tokio::test]
async fn who_has_none_has_one_screen_and_a_new_one_counts_at_once() {
    let api = TenantClient::open();
    limit_becomes(&api, "ann", 1).await;
    let made = api.subscription("ann", "premium").await;
    limit_becomes(&api, "ann", 4).await;
    let to_standard = json!({ "plan": "standard" });
    api.admin().patch(&subscription_path(&made), Some(to_standard)).await.expect(200);
    limit_becomes(&api, "ann", 2).await;
    api.admin().delete(&subscription_path(&made)).await.expect(204);
    limit_becomes(&api, "ann", 1).await;
}

#[tokio::test]
async fn a_user_has_one_that_is_not_over() {
    let api = TenantClient::open();
    let first = api.subscription("ann", "basic").await;
    let second = api.admin().post(SUBSCRIPTIONS, json!({ "user": "ann", "plan": "premium" })).await;
    assert_problem(&second, 409, "a second one");
    assert_eq!(second.body["type"], "/problems/subscription-exists");
    api.neighbour().subscription("ann", "premium").await;

    api.admin().delete(&subscription_path(&first)).await.expect(204);
    api.admin().delete(&subscription_path(&first)).await.expect(204);
    let change = api.admin().patch(&subscription_path(&first), Some(json!({ "plan": "premium" }))).await;
    assert_problem(&change, 409, "a change of one that is over");
    assert_eq!(change.body["type"], "/problems/subscription-over");
    api.subscription("ann", "premium").await;
    assert_eq!(listed(&api, "?user=ann&status=cancelled").await.len(), 1);
}

#[tokio::test]
async fn one_that_is_past_its_end_has_expired_by_itself() {
    let api = TenantClient::open();
    let ends_at = after(&clock(&api).await, 1_000);
    let made = subscribe(&api, "ann", "premium", Some(&ends_at)).await;
    until("the subscription is over", async || {
        let status = api.admin().get(&made).await.expect(200)["status"].clone();
        if status == "expired" { Ok(()) } else { Err(status.to_string()) }
    })
    .await;
    limit_becomes(&api, "ann", 1).await;
    assert_eq!(listed(&api, "?status=expired").await, ["ann"]);
    assert_eq!(listed(&api, "?status=active").await, [] as [&str; 0]);
    api.subscription("ann", "standard").await;
    limit_becomes(&api, "ann", 2).await;
}

#[tokio::test]
async fn parallel_requests_make_one() {
    let api = TenantClient::open();
    let ask = json!({ "user": "ann", "plan": "basic" });
    let answers = join_all((0..20).map(|_| {
        let admin = api.admin();
        let ask = ask.clone();
        async move { admin.post(SUBSCRIPTIONS, ask).await.status }
    }))
    .await;
    assert_eq!(answers.iter().filter(|status| **status == 201).count(), 1, "{answers:?}");
    assert!(answers.iter().all(|status| matches!(status, 201 | 409)), "{answers:?}");
}

#[tokio::test]
async fn a_repeat_under_an_idempotency_key_is_answered_as_the_first_time() {
    let api = TenantClient::open();
    let ask = async |user: &str| {
        let request = api.request(Method::POST, SUBSCRIPTIONS).bearer_auth(api.token("ops", "admin"));
        exchange(request.header("Idempotency-Key", "once").json(&json!({ "user": user, "plan": "basic" })))
            .await
    };
    let first = ask("ann").await.expect(201);
    assert_eq!(ask("ann").await.expect(201), first);
    let other = ask("bob").await;
    assert_problem(&other, 422, "another request");
    assert_eq!(other.body["type"], "/problems/idempotency-key-reused");
    assert_eq!(listed(&api, "").await, ["ann"]);
}

#[tokio::test]
async fn a_plan_that_is_not_there_or_retired_is_refused() {
    let api = TenantClient::open();
    api.neighbour().admin().post(PLANS, json!({ "name": "family", "device_limit": 6 })).await.expect(201);
    api.admin().delete(&format!("{PLANS}/basic")).await.expect(204);
    let ask =
        async |plan: &str| api.admin().post(SUBSCRIPTIONS, json!({ "user": "ann", "plan": plan })).await;
    assert_field(&ask("family").await, "plan", "another tenant's plan");
    let retired = ask("basic").await;
    assert_problem(&retired, 409, "a retired plan");
    assert_eq!(retired.body["type"], "/problems/plan-retired");
}

#[tokio::test]
async fn it_ends_later_than_it_starts() {
    let api = TenantClient::open();
    let ask = json!({ "user": "ann", "plan": "basic", "ends_at": "2020-01-01T00:00:00Z" });
    assert_field(&api.admin().post(SUBSCRIPTIONS, ask).await, "ends_at", "before now");
    let ask = json!({
        "user": "ann", "plan": "basic",
        "starts_at": "2020-01-01T00:00:00Z", "ends_at": "2020-12-31T00:00:00Z"
    });
    assert_field(&api.admin().post(SUBSCRIPTIONS, ask).await, "ends_at", "in the past from the start");
    let made = api.subscription("ann", "basic").await;
    let change = json!({ "starts_at": "2098-01-01T00:00:00Z", "ends_at": "2097-01-01T00:00:00Z" });
    assert_field(
        &api.admin().patch(&subscription_path(&made), Some(change)).await,
        "ends_at",
        "before its start",
    );
    let change = json!({ "starts_at": "2020-01-01T00:00:00Z", "ends_at": "2020-12-31T00:00:00Z" });
    assert_field(&api.admin().patch(&subscription_path(&made), Some(change)).await, "ends_at", "in the past");
    assert_eq!(api.admin().get(&subscription_path(&made)).await.expect(200), made);
}

#[tokio::test]
async fn they_are_found_by_user_plan_and_status_in_pages() {
    let api = TenantClient::open();
    for (user, plan) in [("ann", "basic"), ("bob", "premium"), ("joe", "premium")] {
        api.subscription(user, plan).await;
    }
    assert_eq!(listed(&api, "?user=bob").await, ["bob"]);
    assert_eq!(listed(&api, "?plan=premium&status=active").await.len(), 2);
    let first = api.admin().get(&format!("{SUBSCRIPTIONS}?limit=2")).await.expect(200);
    let cursor = first["next_cursor"].as_str().unwrap();
    assert_eq!(listed(&api, &format!("?limit=2&cursor={cursor}")).await.len(), 1);
}

#[tokio::test]
async fn each_change_is_on_record_in_its_users_pool() {
    let api = TenantClient::open();
    let made = api.subscription("ann", "premium").await;
    api.admin().delete(&subscription_path(&made)).await.expect(204);
    let found = api.admin().get(&format!("{AUDIT}?pool=ann")).await.expect(200);
    let told: Vec<_> = found["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|record| (&record["action"], &record["stream"], &record["seq"], &record["limit"]))
        .collect();
    let stream = json!("entitlement");
    assert_eq!(
        told,
        [
            (&json!("subscription_updated"), &stream, &json!(2), &json!(1)),
            (&json!("subscription_created"), &stream, &json!(1), &json!(4)),
        ]
    );
}
