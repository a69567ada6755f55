//! The answers by which a lost region counts as alive.

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, HeaderValue};

use super::is_from_server;

#[test]
fn only_a_load_balancer_without_a_server_counts_as_silence() {
    let none = HeaderMap::new();
    let by_server = HeaderMap::from_iter([("x-request-id".parse().unwrap(), HeaderValue::from_static("r1"))]);
    for (status, headers, wanted) in [
        (200, &none, true),
        (403, &none, true),
        (404, &none, true),
        (421, &by_server, true),
        (500, &none, true),
        (502, &none, false),
        (503, &none, false),
        (503, &by_server, true),
        (504, &none, false),
    ] {
        let status = StatusCode::from_u16(status).unwrap();
        assert_eq!(is_from_server(status, headers), wanted, "{status}");
    }
}
