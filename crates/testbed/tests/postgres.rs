//! Tests of the PostgreSQL harness.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::SocketAddr;
use std::time::Duration;

use seatkeeper_testbed::disk::Disk;
use seatkeeper_testbed::postgres::{self, Postgres, Stop};
use seatkeeper_testbed::proxy::{Network, Proxy};
use sqlx::{Connection as _, PgConnection};

/// Longer than a healthy server takes to answer.
const A_WHILE: Duration = Duration::from_millis(500);

#[tokio::test]
async fn each_database_is_empty_and_its_own() {
    let (one, other) = (postgres::database(), postgres::database());
    assert_ne!(one.url(), other.url());
    for database in [&one, &other] {
        let mut connection = PgConnection::connect(&database.url()).await.unwrap();
        sqlx::query("CREATE TABLE mine (id INT PRIMARY KEY)").execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }
}

#[tokio::test]
async fn what_was_committed_is_there_after_each_kind_of_stop() {
    let server = Postgres::start();
    let url = server.url("postgres");
    let mut connection = PgConnection::connect(&url).await.unwrap();
    sqlx::query("CREATE TABLE kept (id INT PRIMARY KEY)").execute(&mut connection).await.unwrap();
    for (id, how) in [Stop::Fast, Stop::Immediate].into_iter().enumerate() {
        let insert = sqlx::query("INSERT INTO kept VALUES ($1)").bind(id as i32);
        insert.execute(&mut connection).await.unwrap();
        let pid = server.pid();
        server.stop(how);
        assert!(PgConnection::connect(&url).await.is_err(), "{how:?}");
        server.start_again();
        assert_ne!(server.pid(), pid);
        connection = PgConnection::connect(&url).await.unwrap();
        let kept: i64 =
            sqlx::query_scalar("SELECT COUNT(*) FROM kept").fetch_one(&mut connection).await.unwrap();
        assert_eq!(kept, id as i64 + 1, "{how:?}");
    }
}

#[tokio::test]
async fn a_server_ends_with_its_owner() {
    let server = Postgres::start();
    let url = server.url("postgres");
    PgConnection::connect(&url).await.unwrap();
    drop(server);
    assert!(PgConnection::connect(&url).await.is_err());
}

async fn table(url: &str) -> PgConnection {
    let mut connection = PgConnection::connect(url).await.unwrap();
    sqlx::query("CREATE TABLE kept (id INT, padding TEXT)").execute(&mut connection).await.unwrap();
    connection
}

async fn insert(connection: &mut PgConnection, rows: i32) -> sqlx::Result<u64> {
    let insert = "INSERT INTO kept SELECT n, repeat('x', 1000) FROM generate_series(1, $1) n";
    Ok(sqlx::query(insert).bind(rows).execute(connection).await?.rows_affected())
}

async fn count(connection: &mut PgConnection) -> i64 {
    sqlx::query_scalar("SELECT COUNT(*) FROM kept").fetch_one(connection).await.unwrap()
}

#[tokio::test]
async fn a_server_that_is_frozen_answers_when_it_wakes() {
    let server = Postgres::start();
    let mut connection = table(&server.url("postgres")).await;
    server.pause();
    let counting = count(&mut connection);
    tokio::pin!(counting);
    assert!(tokio::time::timeout(A_WHILE, &mut counting).await.is_err(), "it answered");
    server.resume();
    assert_eq!(counting.await, 0);
    server.pause();
    drop(server);
}

#[tokio::test]
async fn a_server_whose_disk_is_full_refuses_to_grow_and_goes_on_with_room() {
    let disk = Disk::new();
    let server = Postgres::start_on(&disk);
    let mut connection = table(&server.url("postgres")).await;
    assert_eq!(insert(&mut connection, 100).await.unwrap(), 100);
    disk.fill();
    let refused = insert(&mut connection, 100).await.unwrap_err();
    assert_eq!(refused.as_database_error().unwrap().code().unwrap(), "53100", "{refused}");
    assert_eq!(count(&mut connection).await, 100);
    disk.mend();
    assert_eq!(insert(&mut connection, 100).await.unwrap(), 100);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_that_was_cut_off_is_promoted_with_what_it_had() {
    let primary = Postgres::start();
    let mut connection = table(&primary.url("postgres")).await;
    let way = Proxy::start(SocketAddr::from(([127, 0, 0, 1], primary.port())), 0).await;
    let standby = tokio::task::block_in_place(|| Postgres::standby_of(way.address()));
    insert(&mut connection, 10).await.unwrap();
    let mut copy = PgConnection::connect(&standby.url("postgres")).await.unwrap();
    let started = std::time::Instant::now();
    while count(&mut copy).await < 10 {
        assert!(started.elapsed() < Duration::from_secs(30), "it does not arrive");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    way.set(Network::Silent);
    insert(&mut connection, 10).await.unwrap();
    primary.stop(Stop::Immediate);
    standby.promote();
    let mut promoted = PgConnection::connect(&standby.url("postgres")).await.unwrap();
    assert_eq!(count(&mut promoted).await, 10);
    assert_eq!(insert(&mut promoted, 1).await.unwrap(), 1);
}
