//! Encrypted connections, by the `sslmode` of the URL.
#![allow(clippy::expect_used, reason = "a failed test panics")]

use std::time::Duration;

use seatkeeper_postgres::{Connections, PostgresUrl};
use seatkeeper_testbed::authority::Authority;
use seatkeeper_testbed::postgres::Postgres;
use sqlx::postgres::PgPoolOptions;

/// Returns whether a connection by the URL is encrypted, or the reason why there is none.
async fn is_encrypted(url: &str) -> Result<bool, String> {
    let url: PostgresUrl = url.parse().expect("a URL");
    let pool = PgPoolOptions::new().max_connections(1).acquire_timeout(Duration::from_secs(10));
    let connections = Connections::lazy(&url, pool, "encryption", &[]).expect("it is not connected yet");
    let mut connection = connections.acquire_or_explain().await.map_err(|error| error.to_string())?;
    let query = sqlx::query_scalar("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()");
    query.fetch_one(&mut *connection).await.map_err(|error| error.to_string())
}

fn with_root(url: &str, mode: &str, authority: &Authority) -> String {
    format!("{url}?sslmode={mode}&sslrootcert={}", authority.path("ca.pem").display())
}

#[tokio::test]
async fn the_mode_of_the_url_decides_on_encryption() {
    let authority = Authority::new();
    let server = Postgres::start_with_certificate(&authority);
    let url = server.url("postgres");
    for mode in ["verify-full", "verify-ca"] {
        assert_eq!(is_encrypted(&with_root(&url, mode, &authority)).await, Ok(true), "{mode}");
    }
    assert_eq!(is_encrypted(&format!("{url}?sslmode=require")).await, Ok(true));
    assert_eq!(is_encrypted(&url).await, Ok(true), "without a mode, a server that offers encryption gets it");
    assert_eq!(is_encrypted(&format!("{url}?sslmode=disable")).await, Ok(false));
}

#[tokio::test]
async fn a_server_that_cannot_prove_itself_is_refused_with_the_reason() {
    let (authority, other) = (Authority::new(), Authority::new());
    let server = Postgres::start_with_certificate(&authority);
    let url = server.url("postgres");
    for untrusted in [with_root(&url, "verify-full", &other), format!("{url}?sslmode=verify-full")] {
        let refused = is_encrypted(&untrusted).await.expect_err("the certificate is not trusted");
        for part in ["invalid peer certificate", "sslrootcert"] {
            assert!(refused.contains(part), "{refused}");
        }
    }
    let by_name = with_root(&url, "verify-full", &authority).replace("127.0.0.1", "localhost");
    let refused = is_encrypted(&by_name).await.expect_err("the certificate is for 127.0.0.1");
    assert!(refused.contains("not valid for name"), "{refused}");
}

#[tokio::test]
async fn a_server_without_encryption_is_refused_if_the_url_asks_for_encryption() {
    let server = Postgres::start();
    let url = server.url("postgres");
    let refused =
        is_encrypted(&format!("{url}?sslmode=require")).await.expect_err("the server has no certificate");
    assert!(refused.contains("TLS"), "{refused}");
    assert_eq!(is_encrypted(&url).await, Ok(false), "without a mode, a server without encryption is taken");
}
