//! The harness's own promises.

use seatkeeper_testbed::postgres::{self, Postgres, Stop};
use sqlx::{Connection as _, PgConnection};

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
