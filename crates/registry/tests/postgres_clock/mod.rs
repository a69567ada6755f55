//! The lease of PostgreSQL's clock, as prolonged by statements that arrive late.

use std::sync::Arc;

use seatkeeper_core::Region;
use seatkeeper_registry::Epochs;
use seatkeeper_registry::postgres::PostgresRegistry;
use seatkeeper_testbed::postgres::database;
use sqlx::{Connection as _, Executor as _, PgConnection};

use crate::postgres_harness::CLOCK_BY_HAND;

/// The time of a clock by hand before the first turn.
const START: i64 = 1_800_000_000_000;
const LEASE: i64 = 10_000;

/// Carries out, at `now`, the statement that tells the time and was sent at `sent`. Returns the end of the lease.
async fn lease_after(connection: &mut PgConnection, sent: i64, now: i64) -> i64 {
    let turn = sqlx::query("UPDATE clock_by_hand SET millis = $1").bind(START + now);
    connection.execute(turn).await.expect("the clock can be turned");
    let tell = sqlx::query("SELECT * FROM registry.tell_time($1, $2)").bind(START + sent + LEASE).bind(LEASE);
    connection.execute(tell).await.expect("the time is told");
    let until = sqlx::query_scalar::<_, i64>("SELECT trusted_until FROM registry.told");
    until.fetch_one(connection).await.expect("the lease has an end") - START
}

#[tokio::test]
async fn a_statement_prolongs_the_lease_from_the_moment_when_it_was_sent() {
    let database = tokio::task::spawn_blocking(database).await.expect("a database");
    let url = database.url().parse().expect("the URL of a database");
    let epochs = Arc::new(Epochs::default());
    PostgresRegistry::connect(&url, 1, epochs, Region::default(), 10)
        .await
        .expect("the registry can be opened");
    let mut connection = PgConnection::connect(&database.url()).await.expect("the server answers");
    connection.execute(CLOCK_BY_HAND).await.expect("the clock can be replaced");

    assert_eq!(lease_after(&mut connection, 0, 20).await, 10_020, "the first lease");
    assert_eq!(lease_after(&mut connection, 1_000, 9_000).await, 11_000, "8 s late");
    assert_eq!(lease_after(&mut connection, 10_000, 10_020).await, 20_000);
    assert_eq!(
        lease_after(&mut connection, 2_000, 10_040).await,
        20_000,
        "an older statement takes nothing away"
    );
    assert_eq!(lease_after(&mut connection, 10_030, 20_001).await, 20_000, "the lease is over");
}
