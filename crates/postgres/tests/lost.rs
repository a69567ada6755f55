//! An idle connection without answers: a firewall or a fenced host may drop a connection without an error.
#![allow(clippy::expect_used, reason = "a failed test panics")]

use std::process::Command;
use std::time::Duration;

use seatkeeper_postgres::{Connections, PostgresUrl};
use seatkeeper_testbed::postgres::Postgres;
use sqlx::postgres::PgPoolOptions;

/// Idle for longer than a connection is trusted without a ping.
const IDLE: Duration = Duration::from_millis(1_500);

/// Time limit of an acquire, many times the time limit of a ping.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(30);

/// A process of PostgreSQL that is stopped until the drop: its client's bytes arrive, and are not answered.
struct Stopped(i32);

impl Stopped {
    fn new(pid: i32) -> Self {
        signal("-STOP", pid);
        Self(pid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        signal("-CONT", self.0);
    }
}

fn signal(signal: &str, pid: i32) {
    let sent = Command::new("kill").args([signal, &pid.to_string()]).status().expect("the program kill");
    assert!(sent.success(), "{signal} is sent to {pid}");
}

#[tokio::test]
async fn idle_connections_without_answers_are_replaced_within_an_acquire() {
    let postgres = Postgres::start();
    let url: PostgresUrl = postgres.url("postgres").parse().expect("a URL");
    let pool = PgPoolOptions::new().max_connections(2).acquire_timeout(ACQUIRE_TIMEOUT);
    let connections = Connections::lazy(&url, pool, "lost", &[]).expect("it is not connected yet");
    let (mut one, mut two) =
        (connections.acquire().await.expect("a server"), connections.acquire().await.expect("a server"));
    let mut stopped = Vec::new();
    for connection in [&mut one, &mut two] {
        let pid = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut **connection).await;
        stopped.push(pid.expect("a process"));
    }
    drop((one, two));
    tokio::time::sleep(IDLE).await;
    let _stopped: Vec<_> = stopped.into_iter().map(Stopped::new).collect();

    let (one, two) = tokio::join!(connections.acquire(), connections.acquire());
    for connection in [one, two] {
        let mut connection = connection.expect("a new connection");
        sqlx::query("SELECT 1").execute(&mut *connection).await.expect("an answer");
    }
}
