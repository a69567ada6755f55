//! Connections kept between two statements.
#![allow(clippy::expect_used, reason = "a failed test panics")]

use std::time::Duration;

use seatkeeper_postgres::{Connections, PostgresUrl};
use seatkeeper_testbed::postgres::Postgres;
use sqlx::PgConnection;
use sqlx::postgres::PgPoolOptions;
use tokio::runtime::Runtime;
use tokio::time::timeout;

/// Deadline for a pool, on a busy machine.
const WAIT_MAX: Duration = Duration::from_secs(30);

fn connections(postgres: &Postgres, connections_max: u32) -> Connections {
    let url: PostgresUrl = postgres.url("postgres").parse().expect("a URL");
    let pool = PgPoolOptions::new().max_connections(connections_max);
    Connections::lazy(&url, pool, "kept", &[]).expect("it is not connected yet")
}

/// Returns the process of PostgreSQL behind a connection.
async fn process(connection: &mut PgConnection) -> i32 {
    let pid = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(connection);
    pid.await.expect("a process")
}

#[tokio::test]
async fn the_kept_connection_is_the_next_though_others_are_idle() {
    let postgres = Postgres::start();
    let connections = connections(&postgres, 3);
    let (other, mut kept) =
        (connections.acquire().await, connections.acquire_kept().await.expect("a server"));
    let pid = process(&mut kept).await;
    drop(other);
    for _ in 0..5 {
        connections.keep(kept);
        kept = connections.acquire_kept().await.expect("a server");
        assert_eq!(process(&mut kept).await, pid);
    }
    let mut more = connections.acquire_kept().await.expect("the pool has more");
    assert_ne!(process(&mut more).await, pid);
}

#[tokio::test]
async fn a_connection_for_which_others_wait_is_not_kept() {
    let postgres = Postgres::start();
    let connections = connections(&postgres, 1);
    let only = connections.acquire_kept().await.expect("a server");
    connections.keep(only);
    let next = timeout(WAIT_MAX, connections.acquire()).await.expect("it is free");
    next.expect("a server");
}

#[tokio::test]
async fn a_closed_pool_waits_for_no_kept_connection() {
    let postgres = Postgres::start();
    let connections = connections(&postgres, 3);
    let (kept, late) = (connections.acquire().await, connections.acquire().await);
    connections.keep(kept.expect("a server"));
    let late = async {
        tokio::task::yield_now().await;
        connections.keep(late.expect("a server"));
    };
    let closed = async { tokio::join!(connections.close(), late) };
    timeout(WAIT_MAX, closed).await.expect("it closes");
    assert!(connections.acquire_kept().await.is_err());
}

#[test]
fn a_kept_connection_may_outlive_the_runtime() {
    let postgres = Postgres::start();
    let runtime = Runtime::new().expect("a runtime");
    let connections = runtime.block_on(async {
        let connections = connections(&postgres, 3);
        connections.keep(connections.acquire().await.expect("a server"));
        connections
    });
    drop(connections);
}

#[tokio::test]
async fn the_kept_connection_serves_another_caller_when_the_pool_has_no_other() {
    let postgres = Postgres::start();
    let connections = connections(&postgres, 2);
    let kept = connections.acquire_kept().await.expect("a server");
    connections.keep(kept);
    let _first = connections.acquire().await.expect("the pool has another");
    let second = timeout(WAIT_MAX, connections.acquire()).await.expect("the kept connection is idle");
    second.expect("a server");
}
