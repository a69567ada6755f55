//! Tests of the layer: panics are answered and free their room, and slow bodies take no room.

use std::io;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_REQUEST_METHOD, HOST, ORIGIN};
use axum::http::{Method, StatusCode};
use axum::routing::{get, post};
use axum::{Router, middleware};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tower_service::Service as _;

use super::*;
use crate::flood::Flood;
use crate::http::read_body;
use crate::router::client_address::Proxies;
use crate::settings::{Networks, ProxyHeader};

/// The origin of the page that may use the API.
const PAGE: &str = "https://app.example.com";

/// Returns a layer with room for `requests_max` requests.
fn front(requests_max: usize) -> Front {
    Front {
        metrics: HttpMetrics::default(),
        arrival: Arrival {
            timeout: Duration::from_secs(60),
            proxies: Proxies::new(Networks::default(), ProxyHeader::default()),
            unavailable: Flood::default(),
        },
        cors: Cors::new(PAGE.parse().expect("an origin")),
        request_limit: RequestLimit::for_requests(requests_max),
        forwarding: None,
    }
}

/// Returns a router with room for `requests_max` requests, a route that panics and two routes that answer.
fn router(requests_max: usize) -> Router {
    Router::new()
        .route("/api/panics", get(async || -> StatusCode { panic!("as it was told to") }))
        .route("/api/answers", get(async || StatusCode::NO_CONTENT))
        .route("/healthz", get(async || StatusCode::NO_CONTENT))
        .layer(middleware::from_fn_with_state(Arc::new(front(requests_max)), pass))
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

/// Returns a router with room for one request: a route that reads its body, and a route that waits for `over`.
fn router_of_one(over: Arc<Notify>) -> Router {
    let reads = async |request: Request| {
        let (head, body) = request.into_parts();
        read_body(&head.headers, body, Duration::from_secs(60)).await.map(|_| StatusCode::NO_CONTENT)
    };
    let waits = async move || {
        over.notified().await;
        StatusCode::NO_CONTENT
    };
    Router::new()
        .route("/api/reads", post(reads))
        .route("/api/waits", get(waits))
        .route("/api/answers", get(async || StatusCode::NO_CONTENT))
        .layer(middleware::from_fn_with_state(Arc::new(front(1)), pass))
}

/// Begins a request whose body ends once the returned sender has sent.
async fn begun(router: &mut Router) -> (oneshot::Sender<()>, JoinHandle<Response>) {
    let (end, ended) = oneshot::channel::<()>();
    let (asks, asked) = oneshot::channel();
    let chunk = async move {
        let _ = asks.send(());
        ended.await.map(|()| "{}").map_err(io::Error::other)
    };
    let body = Body::from_stream(futures_util::stream::once(chunk));
    let request = Request::post("/api/reads").header(HOST, "localhost").body(body).expect("a request");
    let answer = router.call(request);
    let answer = tokio::spawn(async move { answer.await.expect("an answer") });
    asked.await.expect("the handler reads");
    (end, answer)
}

#[tokio::test]
async fn a_request_takes_no_room_while_its_body_is_on_the_way() {
    let mut router = router_of_one(Arc::default());
    let (end, first) = begun(&mut router).await;
    let (_never, _second) = begun(&mut router).await;
    assert_eq!(asked(&mut router, "/api/answers").await.status(), StatusCode::NO_CONTENT);
    end.send(()).expect("the body is awaited");
    assert_eq!(first.await.expect("an answer").status(), StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn a_body_that_comes_when_there_is_no_room_is_503() {
    let over = Arc::new(Notify::new());
    let mut router = router_of_one(Arc::clone(&over));
    let (end, late) = begun(&mut router).await;
    let request =
        Request::get("/api/waits").header(HOST, "localhost").body(Body::empty()).expect("a request");
    let mut inside = Box::pin(router.call(request));
    assert!(inside.as_mut().now_or_never().is_none(), "it waits");
    end.send(()).expect("the body is awaited");
    assert_eq!(late.await.expect("an answer").status(), StatusCode::SERVICE_UNAVAILABLE);
    over.notify_one();
    assert_eq!(inside.await.expect("an answer").status(), StatusCode::NO_CONTENT);
    assert_eq!(asked(&mut router, "/api/answers").await.status(), StatusCode::NO_CONTENT);
}
