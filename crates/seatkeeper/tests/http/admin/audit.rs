//! Tests of `GET /api/v1/admin/audit`.

use reqwest::Method;
use serde_json::{Value, json};

use crate::http::exchange::exchange;
use crate::http::shown::shown;
use crate::http::tenant_client::{ACQUIRE, AUDIT, DEVICES, TenantClient, text};
use crate::http::until::until;

/// A license of one seat with a short history: an admission, a denial, a release, and an update to two seats.
struct Story {
    api: TenantClient,
    license: Value,
    session: Value,
}

impl Story {
    async fn told() -> Self {
        let api = TenantClient::open();
        let license = api.license(json!({ "max_seats": 1 })).await;
        let session = api.seat(&license, "ann", "laptop-1").await;
        api.user("bob").acquire(&license["license_key"], "laptop-2").await.expect(403);
        api.user("ann").release(&session).await.expect(204);
        api.change(&license, json!({ "max_seats": 2 })).await;
        Self { api, license, session }
    }

    async fn records(&self, query: &str) -> Vec<Value> {
        let page = self.api.admin().get(&format!("{AUDIT}?{query}")).await.expect(200);
        page["items"].as_array().unwrap().clone()
    }
}

fn actions(records: &[Value]) -> Vec<&str> {
    records.iter().map(|record| text(&record["action"])).collect()
}

#[tokio::test]
async fn every_change_is_one_record_that_says_who_what_and_by_which_request() {
    let story = Story::told().await;
    let records = story.records("").await;
    let told: Vec<_> = records
        .iter()
        .rev()
        .map(|record| {
            ["stream", "seq", "action", "holder", "actor", "reason", "limit", "live", "count"]
                .map(|member| record[member].clone())
        })
        .collect();
    let wanted = [
        json!(["entitlement", 1, "license_created", null, "admin:ops", null, 1, null, 1]),
        json!(["session", 1, "admitted", "laptop-1", "user:ann", null, 1, 1, 1]),
        json!(["session", 2, "denied", "laptop-2", "user:bob", "full", 1, 1, 1]),
        json!(["session", 3, "ended", "laptop-1", "user:ann", "released", 1, 0, 1]),
        json!(["entitlement", 2, "license_updated", null, "admin:ops", null, 2, null, 1]),
    ];
    assert_eq!(json!(told), json!(wanted));
    for record in &records {
        assert_eq!(record["pool"], story.license["license_id"]);
        assert_eq!(shown(&record["at"]), "[time]");
        assert_eq!(shown(&record["request_id"]), "[id]");
    }
}

#[tokio::test]
async fn records_are_found_by_each_filter_and_by_all_of_them() {
    let story = Story::told().await;
    let other = story.api.license(json!({ "max_seats": 1 })).await;
    let all = story.records("").await;
    for action in ["admitted", "denied", "ended", "license_updated"] {
        assert_eq!(actions(&story.records(&format!("action={action}")).await), [action]);
    }
    let of_other = story.records(&format!("pool={}", text(&other["license_id"]))).await;
    assert_eq!(actions(&of_other), ["license_created"]);
    let session = text(&story.session);
    assert_eq!(actions(&story.records(&format!("session={session}")).await), ["ended", "admitted"]);
    let denied_at = text(&all.iter().find(|record| record["action"] == "denied").unwrap()["at"]).to_owned();
    for record in story.records(&format!("from={denied_at}")).await {
        assert!(text(&record["at"]) >= denied_at.as_str());
    }
    let before = story.records(&format!("to={denied_at}")).await;
    assert!(before.iter().all(|record| text(&record["at"]) < denied_at.as_str()));
    let from = story.records(&format!("from={denied_at}")).await;
    assert_eq!(before.len() + from.len(), all.len());
    let both = story.records(&format!("session={session}&action=ended&from={denied_at}")).await;
    assert_eq!(actions(&both), ["ended"]);
}

#[tokio::test]
async fn records_come_in_pages_the_newest_first() {
    let story = Story::told().await;
    let (mut found, mut cursor) = (Vec::new(), String::new());
    for size in [2, 2, 1] {
        let page = story.api.admin().get(&format!("{AUDIT}?limit=2{cursor}")).await.expect(200);
        assert_eq!(page["items"].as_array().unwrap().len(), size);
        found.extend(page["items"].as_array().unwrap().clone());
        cursor = page["next_cursor"].as_str().map(|next| format!("&cursor={next}")).unwrap_or_default();
    }
    assert_eq!((found, cursor.as_str()), (story.records("").await, ""));
}

#[tokio::test]
async fn records_come_as_csv_by_parameter_and_by_header() {
    let story = Story::told().await;
    let token = story.api.token("ops", "admin");
    let request = |path: String| story.api.request(Method::GET, &path).bearer_auth(&token);
    let first = exchange(request(format!("{AUDIT}?format=csv&limit=3"))).await;
    let next = first.headers["x-next-cursor"].to_str().unwrap().to_owned();
    let rest = request(format!("{AUDIT}?limit=3&cursor={next}"));
    let rest = exchange(rest.header("Accept", "application/xml, text/csv;q=0.9")).await;
    assert_eq!(rest.headers.get("x-next-cursor"), None);
    let mut lines = Vec::new();
    for page in [&first, &rest] {
        assert_eq!(
            (page.status, page.headers["content-type"].as_bytes()),
            (200, &b"text/csv; charset=utf-8"[..])
        );
        let mut page = text(&page.body).lines();
        let header = "id,at,pool_kind,pool,stream,seq,epoch,action,session_id,holder,instance_id,actor,actor_tenant,\
                      request_id,reason,limit,version,live,count,user,tier,device_type,device_name,ip,last_heartbeat_at,expires_at";
        assert_eq!(page.next(), Some(header));
        lines.extend(page);
    }
    let records = story.records("").await;
    assert_eq!(lines.len(), records.len());
    for (line, record) in lines.iter().zip(&records) {
        let cells: Vec<_> = line.split(',').collect();
        assert_eq!(cells[0], record["id"].to_string());
        assert_eq!(
            [cells[1], cells[7], cells[13]],
            ["at", "action", "request_id"].map(|name| text(&record[name]))
        );
        let may_be_empty =
            ["user", "tier", "device_type", "device_name", "ip", "last_heartbeat_at", "expires_at"];
        assert_eq!(cells[19..], may_be_empty.map(|name| record[name].as_str().unwrap_or_default()));
    }
}

#[tokio::test]
async fn a_process_and_its_machine_are_told_apart_in_json_and_in_csv() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1, "count_per": "process" })).await;
    let ask = json!({
        "license_key": license["license_key"], "machine_id": "laptop-1", "instance_id": "cad-7"
    });
    api.user("ann").post(ACQUIRE, ask).await.expect(201);
    let found = api.admin().get(&format!("{AUDIT}?action=admitted")).await.expect(200);
    let record = &found["items"][0];
    assert_eq!([&record["holder"], &record["instance_id"]], [&json!("laptop-1"), &json!("cad-7")]);
    let request = api.request(Method::GET, &format!("{AUDIT}?format=csv&action=admitted"));
    let csv = exchange(request.bearer_auth(api.token("ops", "admin"))).await.expect(200);
    assert!(text(&csv).contains(",laptop-1,cad-7,user:ann,"), "{csv}");
}

#[tokio::test]
async fn a_client_cannot_put_a_formula_into_a_spreadsheet() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1 })).await;
    api.seat(&license, "ann", "=HYPERLINK(\"http://example.org\",\"x,y\")").await;
    let request = api.request(Method::GET, &format!("{AUDIT}?format=csv&action=admitted"));
    let csv = exchange(request.bearer_auth(api.token("ops", "admin"))).await.expect(200);
    let wanted = "\"'=HYPERLINK(\"\"http://example.org\"\",\"\"x,y\"\")\"";
    assert!(text(&csv).contains(wanted), "{csv}");

    // The pool of a subscriber is named by the subscriber.
    let screen = json!({ "device_id": "tv", "device_type": "tv" });
    api.user("=1+2").post(DEVICES, screen).await.expect(201);
    until("the admission is on record", async || {
        let request = api.request(Method::GET, &format!("{AUDIT}?format=csv&action=admitted"));
        let csv = exchange(request.bearer_auth(api.token("ops", "admin"))).await.expect(200);
        if text(&csv).contains(",subscriber,'=1+2,") { Ok(()) } else { Err(csv.to_string()) }
    })
    .await;
}

#[tokio::test]
async fn another_tenants_admin_sees_no_record() {
    let story = Story::told().await;
    let elsewhere = story.api.neighbour().admin();
    let (pool, session) = (text(&story.license["license_id"]), text(&story.session));
    for filter in
        [String::new(), format!("pool={pool}"), format!("session={session}"), "action=denied".into()]
    {
        let found = elsewhere.get(&format!("{AUDIT}?{filter}")).await.expect(200);
        assert_eq!(found, json!({ "items": [] }), "{filter}");
    }
}
