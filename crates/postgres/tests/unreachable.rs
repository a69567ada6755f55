//! A server that is out of reach: the error says where and why.
#![allow(clippy::expect_used, reason = "a failed test panics")]

use std::time::Duration;

use seatkeeper_postgres::{Connections, PostgresUrl};
use seatkeeper_testbed::port;
use sqlx::postgres::PgPoolOptions;

#[tokio::test]
async fn a_server_that_does_not_run_is_named_with_the_reason() {
    let port = port::free();
    let url: PostgresUrl = format!("postgres://ann@127.0.0.1:{port}/seats").parse().expect("a URL");
    let pool = PgPoolOptions::new().max_connections(1).acquire_timeout(Duration::from_millis(100));
    let connections = Connections::lazy(&url, pool, "unreachable", &[]).expect("it is not connected yet");
    let error = connections.acquire_or_explain().await.expect_err("no server").to_string();
    for part in [format!("127.0.0.1:{port}").as_str(), "Connection refused", "check that the server runs"] {
        assert!(error.contains(part), "{error} does not say {part}");
    }
}
