//! Tests of `/api/v1/admin/plans`.

use serde_json::{Value, json};

use crate::TOPOLOGY;
use crate::http::exchange::assert_problem;
use crate::http::shown::shown;
use crate::http::tenant_client::{AUDIT, DEVICES, PLANS, TenantClient};
use crate::http::until::until;

fn path(plan: &str) -> String {
    format!("{PLANS}/{plan}")
}

/// Claims a screen for a user, and returns the plan's device limit from the answer.
pub(super) async fn limit_of(api: &TenantClient, user: &str) -> Value {
    let ask = json!({ "device_id": "tv", "device_type": "tv" });
    let answer = api.user(user).post(DEVICES, ask).await;
    assert!(matches!(answer.status, 200 | 201), "{:#}", answer.body);
    answer.body["device_limit"].clone()
}

/// Waits until a changed limit is in effect: at once on the node that made the change, within a second on
/// every other node, later on a busy machine.
pub(super) async fn limit_becomes(api: &TenantClient, user: &str, limit: u32) {
    if TOPOLOGY.nodes() == 1 {
        assert_eq!(limit_of(api, user).await, limit);
    }
    until("a change counts", async || {
        let now = limit_of(api, user).await;
        if now == limit { Ok(()) } else { Err(format!("a limit of {now}")) }
    })
    .await;
}

#[tokio::test]
async fn a_tenant_has_three_plans_from_the_beginning() {
    let api = TenantClient::open();
    let page = api.admin().get(PLANS).await.expect(200);
    let plans: Vec<_> =
        page["items"].as_array().unwrap().iter().map(|plan| (&plan["name"], &plan["device_limit"])).collect();
    let (basic, premium, standard) = (json!("basic"), json!("premium"), json!("standard"));
    assert_eq!(plans, [(&basic, &json!(1)), (&premium, &json!(4)), (&standard, &json!(2))]);
    let premium = api.admin().get(&path("premium")).await.expect(200);
    assert_eq!((&premium["version"], &premium["status"]), (&json!(0), &json!("active")));
}

#[tokio::test]
async fn a_plan_has_what_was_asked_for() {
    let api = TenantClient::open();
    let ask = json!({
        "name": "family", "device_limit": 6, "price_cents": 1999, "when_full": "deny", "ttl_seconds": 60,
        "group_members_max": 8, "group_scope": "any_user", "group_same_content": true
    });
    let plan = api.admin().post(PLANS, ask).await.expect(201);
    assert_eq!(
        shown(&plan),
        json!({
            "name": "family",
            "device_limit": 6,
            "price_cents": 1999,
            "when_full": "deny",
            "ttl_seconds": 60,
            "group_members_max": 8,
            "group_scope": "any_user",
            "group_same_content": true,
            "status": "active",
            "version": 1,
            "created_at": "[time]",
            "updated_at": "[time]"
        })
    );
    assert_eq!(api.admin().get(&path("family")).await.expect(200), plan);
    api.neighbour().admin().get(&path("family")).await.expect(404);
}

#[tokio::test]
async fn a_plan_needs_nothing_but_a_name_and_a_limit() {
    let api = TenantClient::open();
    let plan = api.admin().post(PLANS, json!({ "name": "solo", "device_limit": 1 })).await.expect(201);
    assert_eq!(
        (&plan["price_cents"], &plan["when_full"], &plan["ttl_seconds"]),
        (&json!(0), &json!("evict"), &Value::Null)
    );
    assert_eq!(
        (&plan["group_members_max"], &plan["group_scope"], &plan["group_same_content"]),
        (&json!(0), &json!("same_user"), &json!(false))
    );
}

#[tokio::test]
async fn the_rules_of_groups_change_one_by_one_and_are_checked() {
    let api = TenantClient::open();
    let changed = |plan: &Value| {
        (plan["group_members_max"].clone(), plan["group_scope"].clone(), plan["group_same_content"].clone())
    };
    let change = async |ask| api.admin().patch(&path("premium"), Some(ask)).await;
    let plan = change(json!({ "group_members_max": 4 })).await.expect(200);
    assert_eq!(changed(&plan), (json!(4), json!("same_user"), json!(false)));
    let plan = change(json!({ "group_scope": "any_user" })).await.expect(200);
    assert_eq!(changed(&plan), (json!(4), json!("any_user"), json!(false)));
    let plan = change(json!({ "group_same_content": true, "group_members_max": 0 })).await.expect(200);
    assert_eq!(changed(&plan), (json!(0), json!("any_user"), json!(true)));
    for wrong in [
        json!({ "group_members_max": 9 }),
        json!({ "group_members_max": -1 }),
        json!({ "group_scope": "all" }),
        json!({ "group_same_content": "yes" }),
    ] {
        assert_problem(&change(wrong.clone()).await, 422, &wrong.to_string());
    }
    assert_eq!(api.admin().get(&path("premium")).await.expect(200), plan);
}

#[tokio::test]
async fn a_name_is_taken_once_in_a_tenant_also_by_a_retired_plan() {
    let api = TenantClient::open();
    api.admin().delete(&path("basic")).await.expect(204);
    for name in ["basic", "premium"] {
        let taken = api.admin().post(PLANS, json!({ "name": name, "device_limit": 3 })).await;
        assert_problem(&taken, 409, "taken");
        assert_eq!(taken.body["type"], "/problems/plan-name-taken");
    }
}

#[tokio::test]
async fn a_change_counts_from_the_next_admission_on_and_ends_nobody() {
    let api = TenantClient::open();
    api.subscription("ann", "standard").await;
    assert_eq!(limit_of(&api, "ann").await, 2);
    let phone = json!({ "device_id": "phone", "device_type": "mobile" });
    api.user("ann").post(DEVICES, phone).await.expect(201);

    api.admin().patch(&path("standard"), Some(json!({ "device_limit": 1 }))).await.expect(200);
    let live = api.user("ann").get(DEVICES).await.expect(200);
    assert_eq!(live["items"].as_array().map(Vec::len), Some(2), "{live:#}");
    limit_becomes(&api, "ann", 1).await;

    api.admin().patch(&path("standard"), Some(json!({ "device_limit": 3 }))).await.expect(200);
    limit_becomes(&api, "ann", 3).await;
}

#[tokio::test]
async fn a_change_leaves_what_it_does_not_name_and_null_takes_the_ttl_away() {
    let api = TenantClient::open();
    let admin = api.admin();
    let first = admin.patch(&path("basic"), Some(json!({ "ttl_seconds": 60, "when_full": "deny" }))).await;
    let first = first.expect(200);
    assert_eq!(
        (&first["device_limit"], &first["ttl_seconds"], &first["version"]),
        (&json!(1), &json!(60), &json!(1))
    );
    let second = admin.patch(&path("basic"), Some(json!({ "ttl_seconds": null }))).await.expect(200);
    assert_eq!((&second["ttl_seconds"], &second["when_full"]), (&Value::Null, &json!("deny")));
    let same = admin.patch(&path("basic"), Some(json!({ "ttl_seconds": null }))).await.expect(200);
    assert_eq!(same, second, "a change that changes nothing");
}

#[tokio::test]
async fn a_retired_plan_can_be_offered_again() {
    let api = TenantClient::open();
    let admin = api.admin();
    admin.delete(&path("premium")).await.expect(204);
    admin.delete(&path("premium")).await.expect(204);
    let active = admin.get(&format!("{PLANS}?status=active")).await.expect(200);
    assert_eq!(active["items"].as_array().unwrap().len(), 2);
    let again = admin.patch(&path("premium"), Some(json!({ "status": "active" }))).await.expect(200);
    assert_eq!(again["status"], "active");
}

#[tokio::test]
async fn plans_come_in_pages() {
    let api = TenantClient::open();
    let first = api.admin().get(&format!("{PLANS}?limit=2")).await.expect(200);
    assert_eq!(first["next_cursor"], "premium");
    let second = api.admin().get(&format!("{PLANS}?limit=2&cursor=premium")).await.expect(200);
    assert_eq!((&second["items"][0]["name"], second.get("next_cursor")), (&json!("standard"), None));
}

#[tokio::test]
async fn each_change_is_on_record_under_the_plans_name() {
    let api = TenantClient::open();
    let admin = api.admin();
    admin.post(PLANS, json!({ "name": "family", "device_limit": 6 })).await.expect(201);
    admin.patch(&path("family"), Some(json!({ "device_limit": 5 }))).await.expect(200);
    let records = async |action: &str| {
        let found = admin.get(&format!("{AUDIT}?pool=family&action={action}")).await.expect(200);
        found["items"].as_array().unwrap().clone()
    };
    let [created] = &records("plan_created").await[..] else { panic!("one plan") };
    assert_eq!(
        (&created["stream"], &created["seq"], &created["limit"]),
        (&json!("plan"), &json!(1), &json!(6))
    );
    let [updated] = &records("plan_updated").await[..] else { panic!("one change") };
    assert_eq!(
        (&updated["seq"], &updated["limit"], &updated["actor"]),
        (&json!(2), &json!(5), &json!("admin:ops"))
    );
    assert_eq!(updated["detail"]["name"], "family");
}
