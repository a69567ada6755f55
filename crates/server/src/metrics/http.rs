//! Counters and durations of HTTP requests, by method, route and status.

use std::hash::{Hash, Hasher};
use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::http::{Method, StatusCode};
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::Timing;

/// The `route` label of a request without a matching route.
pub(crate) const UNKNOWN_ROUTE: &str = "unknown";

/// The `method` label of an unusual method.
const OTHER_METHOD: &str = "OTHER";

/// Metrics of HTTP requests. The labels come from known routes and methods, so clients cannot create new
/// series.
#[derive(Clone, Debug)]
pub(crate) struct HttpMetrics {
    requests: Family<ResponseLabels, Counter>,
    durations: Family<RequestLabels, Timing, fn() -> Timing>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    route: Route,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResponseLabels {
    method: &'static str,
    route: Route,
    status: u16,
}

/// The path template of a route; `None` if no route matches.
#[derive(Clone, Debug)]
struct Route(Option<MatchedPath>);

/// A request in progress.
pub(crate) struct Counted<'m> {
    metrics: &'m HttpMetrics,
    asked: RequestLabels,
    began: Instant,
}

impl Default for HttpMetrics {
    fn default() -> Self {
        Self { requests: Family::default(), durations: Family::new_with_constructor(Timing::of_answers) }
    }
}

impl HttpMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("http_requests", "Requests that were answered", self.requests.clone());
        registry.register(
            "http_request_duration_seconds",
            "How long requests took to the head of their answer",
            self.durations.clone(),
        );
    }

    /// Starts the clock of a request whose route is known.
    pub(crate) fn begin(&self, request: &Request) -> Counted<'_> {
        let route = Route(request.extensions().get::<MatchedPath>().cloned());
        let asked = RequestLabels { method: name_of(request.method()), route };
        Counted { metrics: self, asked, began: Instant::now() }
    }
}

impl Counted<'_> {
    /// Counts the request as answered.
    pub(crate) fn answered(self, status: StatusCode) {
        let Self { metrics, asked, began } = self;
        metrics.durations.get_or_create(&asked).observe(began.elapsed());
        let RequestLabels { method, route } = asked;
        metrics.requests.get_or_create(&ResponseLabels { method, route, status: status.as_u16() }).inc();
    }
}

fn name_of(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        _ => OTHER_METHOD,
    }
}

impl Route {
    fn as_str(&self) -> &str {
        self.0.as_ref().map_or(UNKNOWN_ROUTE, MatchedPath::as_str)
    }
}

impl PartialEq for Route {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Route {}

impl Hash for Route {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl EncodeLabelValue for Route {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> std::fmt::Result {
        self.as_str().encode(encoder)
    }
}
