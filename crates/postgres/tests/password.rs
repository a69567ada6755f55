//! Changes of the password in a file.
#![allow(clippy::expect_used, reason = "a failed test panics")]

use std::fs;

use seatkeeper_postgres::{Connections, PostgresUrl};
use seatkeeper_testbed::postgres;
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

const USER: &str = "by_password";

async fn change_to(owner: &mut PgConnection, password: &str) {
    let statement = AssertSqlSafe(format!("ALTER ROLE {USER} PASSWORD '{password}'"));
    sqlx::query(statement).execute(owner).await.expect("the owner may do it");
}

async fn connects(connections: &Connections) -> bool {
    // A connection that returned to the pool would be used again.
    connections.acquire().await.map(|connection| drop(connection.detach())).is_ok()
}

#[tokio::test]
async fn a_pool_that_missed_a_change_learns_the_password_from_another_pool() {
    let database = postgres::database();
    let mut owner = PgConnection::connect(&database.url()).await.expect("a connection");
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("password");
    let write = |password: &str| fs::write(&file, password).expect("it is written");
    write("first");
    let url: PostgresUrl = database.for_user(USER, "first").parse().expect("a URL");
    let url = url.with_password_file(file.clone());
    let pool = |url: &PostgresUrl| {
        Connections::lazy(url, PgPoolOptions::new().max_connections(2), "password", &[]).expect("a file")
    };
    let (busy, quiet) = (pool(&url), pool(&url.clone()));
    let apart = quiet.apart();
    assert!(connects(&busy).await);

    write("second");
    assert!(connects(&busy).await, "the known password counts");
    change_to(&mut owner, "second").await;
    assert!(connects(&busy).await, "the password in the file counts");

    write("third");
    assert!(connects(&busy).await);
    assert!(connects(&quiet).await, "the first password and the third are wrong");
    assert!(connects(&apart).await);
    change_to(&mut owner, "third").await;
    for connections in [&busy, &quiet, &apart] {
        assert!(connects(connections).await, "the password in the file counts");
    }

    // In the opposite order logins fail until the file is written.
    change_to(&mut owner, "fourth").await;
    assert!(!connects(&busy).await);
    write("fourth");
    assert!(connects(&busy).await);
    assert!(connects(&quiet).await);
}
