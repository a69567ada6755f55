//! Each event is counted once, on whichever node it happens.

use std::collections::BTreeMap;

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{TOKEN, named};
use crate::TOPOLOGY;
use crate::harness::Scrape;
use crate::http::capacities::place::CapacityFixture;
use crate::http::tenant_client::{DEVICES, TenantClient, session_path, text};
use crate::http::until::until;

const ACQUIRE: &str = "route=\"/api/v1/licenses/acquire\"";

/// Waits until the sum over the nodes equals the expected counts.
async fn counted(api: &TenantClient, expected: &[(&str, f64)]) {
    let expected: BTreeMap<_, _> = expected.iter().copied().collect();
    until("the counts", async || {
        let scrape = Scrape::with_token(api.harness.doors().all(), TOKEN).await;
        let now: BTreeMap<_, _> = expected.keys().map(|series| (*series, scrape.value(series))).collect();
        let other: Vec<_> =
            now.iter().filter(|(series, count)| expected.get(*series) != Some(count)).collect();
        if other.is_empty() { Ok(()) } else { Err(format!("{other:?}")) }
    })
    .await;
}

/// Produces two admissions, a denial, a resume, a release and an expiry.
async fn licenses(api: &TenantClient) -> Value {
    let license = api.license(json!({ "max_seats": 2 })).await;
    let (ann, key) = (api.user("ann"), &license["license_key"]);
    let first = ann.acquire(key, "m1").await.expect(201)["session_id"].clone();
    ann.acquire(key, "m2").await.expect(201);
    ann.acquire(key, "m3").await.expect(403);
    ann.acquire(key, "m1").await.expect(200);
    ann.acquire(&json!("no such key"), "m1").await.expect(404);
    let path = format!("{}/heartbeat", session_path(&first));
    ann.send(Method::PATCH, &path, Some(json!({ "offline_seconds": 61 }))).await.expect(200);
    ann.release(&first).await.expect(204);
    license
}

async fn others(api: &TenantClient) {
    let screen = json!({ "device_id": "tv-1", "device_type": "tv" });
    api.user("ann").post(DEVICES, screen).await.expect(201);
    let (place, service) = (CapacityFixture::new(api), api.client(api.token("meter", "service")));
    place.take(&service, 1).await;
    place.take(&service, 2).await;
    api.user("ann").get(&format!("/nowhere/{}", Uuid::new_v4())).await.expect(404);
    api.user("ann").get(&format!("/nowhere/{}", Uuid::new_v4())).await.expect(404);
}

#[tokio::test]
async fn what_happens_is_counted_once() {
    let api = TenantClient::open_with(&[
        ("METRICS_TOKEN", TOKEN),
        ("METRICS_REFRESH_SECONDS", "1"),
        ("LICENSES_TTL_SECONDS", "2"),
        // A sink that nobody serves: some metrics need a sink.
        ("USAGE_SINK_URL", "http://127.0.0.1:9/"),
    ]);
    let license = licenses(&api).await;
    others(&api).await;
    let nodes = TOPOLOGY.nodes() as f64;
    let status =
        |status: u16| format!("http_requests_total{{method=\"POST\",{ACQUIRE},status=\"{status}\"}}");
    let of_license = |name: &str| format!("{name}{{license_id=\"{}\"}}", text(&license["license_id"]));
    counted(
        &api,
        &[
            ("license_acquire_requests_total", 5.0),
            ("license_acquire_failures_total{reason=\"full\"}", 1.0),
            ("license_acquire_failures_total{reason=\"not_found\"}", 1.0),
            ("license_acquire_failures_total{reason=\"unavailable\"}", 0.0),
            ("license_sessions_expired_total{reason=\"released\"}", 1.0),
            ("license_sessions_expired_total{reason=\"expired\"}", 1.0),
            ("license_sessions_expired_total{reason=\"evicted\"}", 0.0),
            ("cleanup_latency_seconds_count", 1.0),
            ("session_heartbeat_latency_seconds_count", 1.0),
            ("session_offline_seconds_count", 1.0),
            ("session_offline_seconds_sum", 61.0),
            ("session_admission_latency_seconds_count{pool_kind=\"license\",decision=\"admitted\"}", 2.0),
            ("session_admission_latency_seconds_count{pool_kind=\"license\",decision=\"denied\"}", 1.0),
            ("session_admission_latency_seconds_count{pool_kind=\"license\",decision=\"resumed\"}", 1.0),
            ("sessions_created_total{pool_kind=\"license\"}", 2.0),
            ("sessions_created_total{pool_kind=\"subscriber\"}", 1.0),
            ("sessions_created_total{pool_kind=\"capacity\"}", 2.0),
            ("sessions_upgraded_total", 1.0),
            // Every node reports the same gauges, so the sum is a multiple.
            ("sessions_active{pool_kind=\"license\"}", 0.0),
            ("sessions_active{pool_kind=\"subscriber\"}", nodes),
            ("sessions_active{pool_kind=\"capacity\"}", nodes),
            (&of_license("license_seats_used"), 0.0),
            (&of_license("license_seats_total"), 2.0 * nodes),
            ("registry_mode{pool_kind=\"license\"}", 0.0),
            ("journal_depth", 0.0),
            ("node_ready", nodes),
            ("ledger_up", nodes),
            (&status(201), 2.0),
            (&status(200), 1.0),
            (&status(403), 1.0),
            (&status(404), 1.0),
            ("http_requests_total{method=\"GET\",route=\"unknown\",status=\"404\"}", 2.0),
            ("http_request_duration_seconds_count{method=\"GET\",route=\"unknown\"}", 2.0),
        ],
    )
    .await;
    named::are_those_of_the_page(&api).await;
}

#[tokio::test]
async fn counters_are_those_of_the_moment_of_the_scrape() {
    let api = TenantClient::open_with(&[]);
    let ann = api.user("ann").at_one_node();
    let one_node = [ann.url().to_owned()];
    for count in 1..=5 {
        ann.get("/nowhere").await.expect(404);
        let scrape = Scrape::fetch(&one_node).await;
        let series = "http_requests_total{method=\"GET\",route=\"unknown\",status=\"404\"}";
        assert_eq!(scrape.value(series), f64::from(count));
    }
}

#[tokio::test]
async fn licenses_need_not_have_series_of_their_own() {
    let api = TenantClient::open_with(&[
        ("METRICS_TOKEN", TOKEN),
        ("METRICS_LICENSE_SERIES_MAX", "0"),
        ("METRICS_REFRESH_SECONDS", "1"),
    ]);
    licenses(&api).await;
    let nodes = TOPOLOGY.nodes() as f64;
    counted(&api, &[("sessions_active{pool_kind=\"license\"}", nodes)]).await;
    let scrape = Scrape::with_token(api.harness.doors().all(), TOKEN).await;
    let of_licenses: Vec<_> = scrape.samples.keys().filter(|series| series.contains("license_id")).collect();
    assert_eq!(of_licenses, Vec::<&String>::new());
}
