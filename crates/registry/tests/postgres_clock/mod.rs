//! The lease of PostgreSQL's clock: prolonged by statements that arrive late, and beside failing heartbeats.

use std::sync::Arc;
use std::time::Duration;

use seatkeeper_core::{Actor, Authority, Bucket, Origin, Reach, Region, RegistryTime, SessionId};
use seatkeeper_registry::postgres::PostgresRegistry;
use seatkeeper_registry::{Epochs, Error, Expiry as _, Sessions as _, TimeReading};
use seatkeeper_testbed::postgres::{Database, database};
use sqlx::{Connection as _, Executor as _, PgConnection};

use crate::postgres_harness::CLOCK_BY_HAND;

/// The time of a clock by hand before the first turn.
const START: i64 = 1_800_000_000_000;
const LEASE: i64 = 10_000;

/// A clock by hand, 8 s later at each reading.
const EACH_READING_TAKES_8_S: &str = "
    CREATE OR REPLACE FUNCTION registry.clock() RETURNS bigint LANGUAGE sql VOLATILE
    AS 'UPDATE clock_by_hand SET millis = millis + 8000 RETURNING millis'";

/// Adds a pool of 50,000 live sessions, and an expired session.
const MANY_SESSIONS: &str = "
    INSERT INTO registry.pools (bucket, kind, tenant, name, seq, live, due)
    VALUES (7, 'license', 'tenant', 'pool', 0, 50001, 9999999999999);
    INSERT INTO registry.sessions (id, pool, holder, users, started, last_heartbeat, ttl, tier)
    SELECT gen_random_uuid(), (SELECT pool FROM registry.pools), number, '{ann}', 1, 1799999999000, 60000, 1
    FROM generate_series(1, 50000) AS number;
    INSERT INTO registry.sessions (id, pool, holder, users, started, last_heartbeat, ttl, tier)
    VALUES (gen_random_uuid(), (SELECT pool FROM registry.pools), 'over', '{ann}', 1, 1799999930000, 60000, 1)";

const LONG_UPDATES_ARE_CANCELLED: &str = "
    CREATE FUNCTION cancel_long() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF (SELECT count(*) FROM renewed) > 40000 THEN
            RAISE EXCEPTION 'canceling statement due to statement timeout' USING ERRCODE = '57014';
        END IF;
        RETURN NULL;
    END $$;
    CREATE TRIGGER cancel_long AFTER UPDATE ON registry.sessions REFERENCING NEW TABLE AS renewed
    FOR EACH STATEMENT EXECUTE FUNCTION cancel_long()";

/// Age from which a heartbeat is judged, and more.
const JUDGED_AFTER: Duration = Duration::from_secs(1);

/// A registry over a new database with a clock set by hand, and a connection to the database.
async fn by_hand() -> (Database, PostgresRegistry, PgConnection) {
    let database = tokio::task::spawn_blocking(database).await.expect("a database");
    let url = database.url().parse().expect("the URL of a database");
    let registry =
        PostgresRegistry::connect(&url, 1, Arc::new(Epochs::default()), Region::default(), 10).await;
    let mut connection = PgConnection::connect(&database.url()).await.expect("the server answers");
    connection.execute(CLOCK_BY_HAND).await.expect("the clock can be replaced");
    (database, registry.expect("the registry can be opened"), connection)
}

async fn lease_end(connection: &mut PgConnection) -> i64 {
    let until = sqlx::query_scalar::<_, i64>("SELECT trusted_until FROM registry.told");
    until.fetch_one(connection).await.expect("the lease has an end") - START
}

/// Carries out, at `now`, the statement that tells the time and was sent at `sent`. Returns the end of the lease.
async fn lease_after(connection: &mut PgConnection, sent: i64, now: i64) -> i64 {
    let turn = sqlx::query("UPDATE clock_by_hand SET millis = $1").bind(START + now);
    connection.execute(turn).await.expect("the clock can be turned");
    let tell = sqlx::query("SELECT * FROM registry.tell_time(0::smallint, $1, $2)")
        .bind(START + sent + LEASE)
        .bind(LEASE);
    connection.execute(tell).await.expect("the time is told");
    lease_end(connection).await
}

#[tokio::test]
async fn a_statement_prolongs_the_lease_from_the_moment_when_it_was_sent() {
    let (_database, _registry, mut connection) = by_hand().await;
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

/// At a fallback, clients retry while PostgreSQL does not serve yet. Few heartbeats follow, if there are few sessions.
#[tokio::test]
async fn heartbeats_of_buckets_that_are_not_served_yet_do_not_end_the_lease() {
    let (_database, registry, mut connection) = by_hand().await;
    registry.clock().keep().await.expect("the clock is read");
    let bucket = Bucket::all().next().expect("a bucket");
    let nowhere = SessionId::mint(RegistryTime::default(), bucket, Region::default(), 1);
    let who = Authority::new("tenant".into(), Reach::Tenant);
    let origin = Origin { actor: Actor::User("ann".into()), request: None };
    for _ in 0..50 {
        let heartbeat = registry.heartbeat(nowhere, &who, &origin).await;
        assert!(matches!(heartbeat, Err(Error::NotServing { .. })), "{heartbeat:?}");
    }
    tokio::time::sleep(JUDGED_AFTER).await;
    registry.now().await.expect("the time is told");
    assert_eq!(lease_end(&mut connection).await, LEASE);
}

/// Gives each session a full TTL first, which takes longer the more sessions there are: as long as a lease, or longer.
#[tokio::test]
async fn the_lease_of_a_clock_that_is_trusted_again_begins_at_the_end_of_the_step() {
    let (_database, _registry, mut connection) = by_hand().await;
    lease_after(&mut connection, 0, 0).await;
    lease_after(&mut connection, 0, LEASE + 1_000).await;
    connection.execute(EACH_READING_TAKES_8_S).await.expect("the clock can be replaced");
    let trust = sqlx::query("SELECT * FROM registry.trust_clock($1, $2)").bind(START + 100_000).bind(LEASE);
    assert_eq!(connection.execute(trust).await.expect("the clock is trusted").rows_affected(), 1);
    let read = sqlx::query_scalar::<_, i64>("SELECT millis FROM clock_by_hand");
    let latest_reading = read.fetch_one(&mut connection).await.expect("a time") - START;
    assert_eq!(lease_end(&mut connection).await, latest_reading + LEASE);
    assert!(latest_reading >= LEASE + 1_000 + 3 * 8_000, "read at the end of the step as well");
}

/// A million sessions are more than a statement may take. The trigger stands for the time limit of a statement.
#[tokio::test]
async fn time_runs_again_also_with_more_sessions_than_one_statement_can_renew() {
    let (database, _registry, mut connection) = by_hand().await;
    lease_after(&mut connection, 0, 0).await;
    connection.execute(MANY_SESSIONS).await.expect("sessions can be stored");
    connection.execute(LONG_UPDATES_ARE_CANCELLED).await.expect("a trigger");
    lease_after(&mut connection, 0, LEASE + 1_000).await;

    let url = database.url().parse().expect("the URL of a database");
    let epochs = Arc::new(Epochs::default());
    // A node that has seen no jump of the clock.
    let node = PostgresRegistry::connect(&url, 2, epochs, Region::default(), 10).await;
    let node = node.expect("the registry can be opened");
    node.clock().keep().await.expect("time is restarted");

    let read = node.read_time().await.expect("the time is told");
    assert_eq!(read, TimeReading { now: at(LEASE as u64 + 1_000), is_frozen: false });
    let early = "SELECT count(*) FROM registry.sessions WHERE last_heartbeat < $1";
    let early = sqlx::query_scalar::<_, i64>(early).bind(START + LEASE + 1_000);
    let early = early.fetch_one(&mut connection).await.expect("a count");
    assert_eq!(early, 1, "the session that was over before time stopped");
}

/// The time of a clock past its lease says so, and goes on afterwards.
#[tokio::test]
async fn a_reading_of_time_that_stands_still_says_so() {
    let (_database, registry, mut connection) = by_hand().await;
    registry.clock().keep().await.expect("the clock is read");
    registry.now().await.expect("the time is told");
    let read = registry.read_time().await.expect("the time is told");
    assert_eq!(read, TimeReading { now: at(0), is_frozen: false });
    lease_after(&mut connection, 0, LEASE + 1_000).await;
    let read = registry.read_time().await.expect("the time is told");
    assert_eq!(read, TimeReading { now: at(0), is_frozen: true });
}

fn at(millis: u64) -> RegistryTime {
    RegistryTime::from_millis(START as u64 + millis)
}
