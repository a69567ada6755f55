//! Tests of `GET /api/v1/admin/licenses` and `GET /api/v1/admin/licenses/{license_id}`.

use serde_json::{Value, json};

use crate::http::exchange::assert_problem;
use crate::http::tenant_client::{LICENSES, TenantClient, license_path, text};

#[tokio::test]
async fn a_license_tells_how_many_of_its_seats_are_held() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 3 })).await;
    api.seat(&license, "ann", "laptop-1").await;
    let session = api.seat(&license, "bob", "laptop-2").await;
    assert_eq!(api.license_now(&license).await["seats_used"], 2);
    api.user("bob").release(&session).await.expect(204);
    assert_eq!(api.license_now(&license).await["seats_used"], 1);
}

#[tokio::test]
async fn licenses_are_listed_in_pages_the_oldest_first() {
    let api = TenantClient::open();
    let mut all = Vec::new();
    for seats in 1..=5 {
        all.push(api.license(json!({ "max_seats": seats })).await);
    }
    let (mut found, mut cursor) = (Vec::new(), String::new());
    for size in [2, 2, 1] {
        let page = api.admin().get(&format!("{LICENSES}?limit=2{cursor}")).await.expect(200);
        assert_eq!(items(&page).len(), size);
        found.extend(items(&page).clone());
        cursor = page["next_cursor"].as_str().map(|next| format!("&cursor={next}")).unwrap_or_default();
    }
    assert_eq!((found, cursor.as_str()), (all, ""));
}

#[tokio::test]
async fn licenses_are_listed_by_status() {
    let api = TenantClient::open();
    for status in ["active", "suspended", "revoked"] {
        let license = api.license(json!({ "max_seats": 1 })).await;
        let license = api.change(&license, json!({ "status": status })).await;
        let page = api.admin().get(&format!("{LICENSES}?status={status}")).await.expect(200);
        assert_eq!(*items(&page), [license]);
    }
    assert_eq!(items(&api.admin().get(LICENSES).await.expect(200)).len(), 3);
}

#[tokio::test]
async fn another_tenants_admin_sees_no_license() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1 })).await;
    let elsewhere = api.neighbour().admin();
    assert_eq!(elsewhere.get(LICENSES).await.expect(200), json!({ "items": [] }));
    let after_it = format!("{LICENSES}?cursor={}", text(&license["license_id"]));
    assert_eq!(elsewhere.get(&after_it).await.expect(200), json!({ "items": [] }));
    assert_problem(&elsewhere.get(&license_path(&license)).await, 404, "another tenant's");
}

fn items(page: &Value) -> &Vec<Value> {
    page["items"].as_array().unwrap()
}
