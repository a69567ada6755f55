//! Tests of the layer: panics are answered and free their room.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_REQUEST_METHOD, HOST, ORIGIN};
use axum::http::{Method, StatusCode};
use axum::routing::get;
use axum::{Router, middleware};
use tower_service::Service as _;

use super::*;
use crate::flood::Flood;
use crate::router::client_address::Proxies;
use crate::settings::{Networks, ProxyHeader};

/// The origin of the page that may use the API.
const PAGE: &str = "https://app.example.com";

/// Returns a router with room for `requests_max` requests, a route that panics and two routes that answer.
fn router(requests_max: usize) -> Router {
    let front = Front {
        metrics: HttpMetrics::default(),
        arrival: Arrival {
            timeout: Duration::from_secs(60),
            proxies: Proxies::new(Networks::default(), ProxyHeader::default()),
            unavailable: Flood::default(),
        },
        cors: Cors::new(PAGE.parse().expect("an origin")),
        request_limit: RequestLimit::for_requests(requests_max),
        forwarding: None,
    };
    Router::new()
        .route("/api/panics", get(async || -> StatusCode { panic!("as it was told to") }))
        .route("/api/answers", get(async || StatusCode::NO_CONTENT))
        .route("/healthz", get(async || StatusCode::NO_CONTENT))
        .layer(middleware::from_fn_with_state(Arc::new(front), pass))
}

async fn asked(router: &mut Router, path: &str) -> Response {
    let request =
        Request::builder().uri(path).header(HOST, "localhost").body(Body::empty()).expect("a request");
    router.call(request).await.expect("an answer")
}

#[tokio::test]
async fn a_panic_is_one_answer_and_takes_no_room() {
    let mut router = router(1);
    for _ in 0..3 {
        let answer = asked(&mut router, "/api/panics").await;
        assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(answer.headers().contains_key("x-request-id"), "{:?}", answer.headers());
    }
    assert_eq!(asked(&mut router, "/api/answers").await.status(), StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn what_is_not_of_the_api_has_room_always() {
    let mut router = router(0);
    assert_eq!(asked(&mut router, "/api/answers").await.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(asked(&mut router, "/healthz").await.status(), StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn a_script_of_an_allowed_page_reads_that_the_server_is_busy() {
    let mut router = router(0);
    let request = |method| {
        let request = Request::builder().method(method).uri("/api/answers").header(HOST, "localhost");
        let request = request.header(ORIGIN, PAGE);
        request.header(ACCESS_CONTROL_REQUEST_METHOD, "GET").body(Body::empty()).expect("a request")
    };
    let preflight = router.call(request(Method::OPTIONS)).await.expect("an answer");
    assert_eq!(preflight.status(), StatusCode::NO_CONTENT);
    let busy = router.call(request(Method::GET)).await.expect("an answer");
    assert_eq!(busy.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(busy.headers()[ACCESS_CONTROL_ALLOW_ORIGIN], PAGE);
}
