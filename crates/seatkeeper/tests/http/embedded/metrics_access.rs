//! Access to scrapes, and the per-tenant series in scrapes.

use std::fs;

use reqwest::StatusCode;
use seatkeeper_testbed::port;
use serde_json::json;

use crate::harness::Scrape;
use crate::http::tenant_client::{TenantClient, text};
use crate::http::until::until;

const TOKEN: &str = "let-me-see-it-all";

/// Creates a license with a taken seat, and returns the name of one of its series.
async fn series_of_a_license(api: &TenantClient) -> String {
    let license = api.license(json!({ "max_seats": 2 })).await;
    api.seat(&license, "ann", "laptop").await;
    format!("license_seats_used{{license_id=\"{}\"}}", text(&license["license_id"]))
}

/// Waits until a scrape counts the seat. Returns true if the scrape shows `series`.
async fn shown(url: &str, token: &str, series: &str) -> bool {
    until("the seat is counted", async || {
        let scrape = Scrape::with_token(&[url.to_owned()], token).await;
        let live = scrape.value("sessions_active{pool_kind=\"license\"}");
        if live == 1.0 { Ok(scrape.samples.contains_key(series)) } else { Err(format!("{live}")) }
    })
    .await
}

async fn status(url: &str, path: &str, token: Option<&str>) -> StatusCode {
    let request = reqwest::Client::new().get(format!("{url}{path}"));
    let request = token.into_iter().fold(request, reqwest::RequestBuilder::bearer_auth);
    request.send().await.expect("an answer").status()
}

#[tokio::test]
async fn a_scrape_that_nothing_protects_names_no_license() {
    let api = TenantClient::open_with(&[("METRICS_REFRESH_SECONDS", "1")]);
    let series = series_of_a_license(&api).await;
    assert!(!shown(api.harness.url(), "", &series).await);
    // Without a configured token, a bearer token shows no more.
    assert!(!shown(api.harness.url(), &api.token("ops", "admin"), &series).await);
}

#[tokio::test]
async fn a_scrape_with_the_token_names_licenses_and_one_without_is_401() {
    let api = TenantClient::open_with(&[("METRICS_REFRESH_SECONDS", "1"), ("METRICS_TOKEN", TOKEN)]);
    let series = series_of_a_license(&api).await;
    assert!(shown(api.harness.url(), TOKEN, &series).await);
    let admin = api.token("ops", "admin");
    for token in [None, Some(""), Some(&TOKEN[1..]), Some("let-me-see-it-alL"), Some(&admin)] {
        assert_eq!(status(api.harness.url(), "/metrics", token).await, 401, "{token:?}");
    }
}

#[tokio::test]
async fn the_token_in_a_file_is_replaced_while_it_counts() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    fs::write(&file, "the-old-one\n").unwrap();
    let api = TenantClient::open_with(&[("METRICS_TOKEN_FILE", file.to_str().unwrap())]);
    assert_eq!(status(api.harness.url(), "/metrics", Some("the-old-one")).await, 200);
    fs::write(&file, "the-new-one\n").unwrap();
    until("the new token counts", async || {
        match status(api.harness.url(), "/metrics", Some("the-new-one")).await {
            StatusCode::OK => Ok(()),
            other => Err(other.to_string()),
        }
    })
    .await;
    assert_eq!(status(api.harness.url(), "/metrics", Some("the-old-one")).await, 401);
}

#[tokio::test]
async fn metrics_with_an_address_of_their_own_are_served_there_alone() {
    let address = format!("127.0.0.1:{}", port::free());
    let api = TenantClient::open_with(&[("METRICS_REFRESH_SECONDS", "1"), ("METRICS_LISTEN", &address)]);
    let (series, own) = (series_of_a_license(&api).await, format!("http://{address}"));
    assert!(shown(&own, "", &series).await);
    assert_eq!(status(api.harness.url(), "/metrics", None).await, 404);
    for path in ["/healthz", "/openapi.json", "/docs/", "/api/v1/admin/licenses"] {
        assert_eq!(status(&own, path, Some(&api.token("ops", "admin"))).await, 404, "{path}");
    }
}

#[tokio::test]
async fn metrics_with_an_address_of_their_own_ask_for_the_token_there() {
    let address = format!("127.0.0.1:{}", port::free());
    let api = TenantClient::open_with(&[("METRICS_TOKEN", TOKEN), ("METRICS_LISTEN", &address)]);
    let own = format!("http://{address}");
    assert_eq!(status(&own, "/metrics", None).await, 401);
    assert_eq!(status(&own, "/metrics", Some(TOKEN)).await, 200);
    drop(api);
}
