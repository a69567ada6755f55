//! Migrations by a role that may not change tables.
#![allow(clippy::expect_used, clippy::panic, reason = "a failed test panics")]

use std::time::{Duration, Instant};

use seatkeeper_postgres::{MIGRATIONS_TABLE, MigrationError, PostgresUrl, migrate_tables, migrator};
use seatkeeper_testbed::postgres::{self, Database};
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

const ONE: (&str, &str) = ("0001_one.sql", "CREATE TABLE one (id INT PRIMARY KEY)");
const OTHER_ONE: (&str, &str) = ("0001_one.sql", "CREATE TABLE one (id BIGINT PRIMARY KEY)");
const TWO: (&str, &str) = ("0002_two.sql", "CREATE TABLE two (id INT PRIMARY KEY)");
/// Waits until the test gives up its lock.
const HELD: (&str, &str) = ("0001_held.sql", "LOCK TABLE gate; CREATE TABLE one (id INT PRIMARY KEY)");

/// Locks a table against readers.
const CHANGES_GATE: (&str, &str) = ("0001_gate.sql", "ALTER TABLE gate ADD COLUMN width INT");

const READ: &str = "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO";

const WAIT_MAX: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(10);

async fn connect(url: &str) -> PgConnection {
    PgConnection::connect(url).await.expect("a connection")
}

async fn execute(connection: &mut PgConnection, statement: String) {
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(connection).await.expect("it is done");
}

/// Creates a role that may not change tables, and returns the role's URL of the database. Tests share the server, so every
/// test has a role of its own.
async fn node(owner: &mut PgConnection, database: &Database, role: &str) -> String {
    execute(owner, format!("CREATE ROLE {role} LOGIN PASSWORD 'by-node'")).await;
    database.url().replacen("seatkeeper@", &format!("{role}:by-node@"), 1)
}

async fn migrate(migrations: &Migrator, url: &str) -> Result<(), MigrationError> {
    let url: PostgresUrl = url.parse().expect("a URL");
    migrate_tables(migrations, MIGRATIONS_TABLE, &url, "migrations").await
}

#[tokio::test]
async fn current_tables_need_no_right_to_change_them() {
    let database = postgres::database();
    let mut owner = connect(&database.url()).await;
    let node = node(&mut owner, &database, "of_current_tables").await;
    let (older, present) = (migrator(&[ONE]), migrator(&[ONE, TWO]));
    execute(&mut owner, format!("{READ} of_current_tables")).await;
    let refused = migrate(&older, &node).await;
    assert!(matches!(refused, Err(MigrationError::NotOwner(_))), "no tables: {refused:?}");

    migrate(&older, &database.url()).await.expect("tables");
    migrate(&older, &node).await.expect("current tables");
    let refused = migrate(&present, &node).await;
    assert!(matches!(refused, Err(MigrationError::NotOwner(_))), "older tables: {refused:?}");

    migrate(&present, &database.url()).await.expect("tables");
    migrate(&present, &node).await.expect("current tables");
    for by in [&node, &database.url()] {
        let refused = migrate(&older, by).await;
        let is_named = matches!(refused, Err(MigrationError::Failed(MigrateError::VersionMissing(2))));
        assert!(is_named, "newer tables: {refused:?}");
        let refused = migrate(&migrator(&[OTHER_ONE, TWO]), by).await;
        let is_named = matches!(refused, Err(MigrationError::Failed(MigrateError::VersionMismatch(1))));
        assert!(is_named, "other tables: {refused:?}");
    }
}

#[tokio::test]
async fn tables_that_may_not_be_read_are_told_from_tables_that_are_pending() {
    let database = postgres::database();
    let mut owner = connect(&database.url()).await;
    let node = node(&mut owner, &database, "of_unreadable_tables").await;
    let migrations = migrator(&[ONE]);
    migrate(&migrations, &database.url()).await.expect("tables");
    let refused = migrate(&migrations, &node).await;
    assert!(matches!(refused, Err(MigrationError::NoRights(_))), "{refused:?}");
    execute(&mut owner, format!("GRANT SELECT ON {MIGRATIONS_TABLE} TO of_unreadable_tables")).await;
    migrate(&migrations, &node).await.expect("current tables");
}

/// Waits until a session waits for a lock of this type.
async fn waits(observer: &mut PgConnection, locktype: &str) {
    let started = Instant::now();
    let waiting = "SELECT EXISTS (SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = database \
        WHERE datname = current_database() AND locktype = $1 AND NOT granted)";
    while !sqlx::query_scalar::<_, bool>(waiting)
        .bind(locktype)
        .fetch_one(&mut *observer)
        .await
        .expect("locks")
    {
        assert!(started.elapsed() < WAIT_MAX, "nobody waits for {locktype}");
        tokio::time::sleep(PAUSE).await;
    }
}

#[tokio::test]
async fn a_role_without_the_right_waits_for_the_owner_who_migrates() {
    let database = postgres::database();
    let (mut holder, mut owner) = (connect(&database.url()).await, connect(&database.url()).await);
    let node = node(&mut owner, &database, "of_waiting").await;
    execute(&mut owner, format!("CREATE TABLE gate (); {READ} of_waiting")).await;
    let mut gate = holder.begin().await.expect("a transaction");
    execute(&mut gate, "LOCK TABLE gate".to_owned()).await;
    let migrations = migrator(&[HELD]);
    let story = async {
        let mut observer = connect(&database.url()).await;
        waits(&mut observer, "relation").await;
        let opens = async {
            waits(&mut observer, "advisory").await;
            gate.rollback().await.expect("the gate opens");
        };
        tokio::join!(migrate(&migrations, &node), opens).0
    };
    let url = database.url();
    let (by_owner, by_node) = tokio::join!(migrate(&migrations, &url), story);
    by_owner.expect("tables");
    by_node.expect("current tables");
}

/// Waits until no session of a migration is left.
async fn none_migrates(observer: &mut PgConnection) {
    let started = Instant::now();
    let migrating = "SELECT EXISTS (SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'migrations')";
    while sqlx::query_scalar::<_, bool>(migrating).fetch_one(&mut *observer).await.expect("sessions") {
        assert!(started.elapsed() < WAIT_MAX, "a migration that was called off goes on");
        tokio::time::sleep(PAUSE).await;
    }
}

#[tokio::test]
async fn a_migration_that_waits_for_a_reader_lets_commits_go_on_and_can_be_called_off() {
    let database = postgres::database();
    let url = database.url();
    let (mut reader, mut writer) = (connect(&url).await, connect(&url).await);
    execute(&mut writer, "CREATE TABLE gate (height INT)".to_owned()).await;
    let mut reading = reader.begin().await.expect("a transaction");
    execute(&mut reading, "LOCK TABLE gate IN ACCESS SHARE MODE".to_owned()).await;
    let migrations = migrator(&[CHANGES_GATE]);
    let writes = async {
        waits(&mut writer, "relation").await;
        let written =
            tokio::time::timeout(WAIT_MAX, execute(&mut writer, "INSERT INTO gate VALUES (1)".to_owned()));
        written.await.expect("a commit that goes on");
    };
    tokio::select! {
        migrated = migrate(&migrations, &url) => panic!("migrated under a reader: {migrated:?}"),
        () = writes => {}
    }
    // The select has dropped the migration.
    none_migrates(&mut writer).await;
    reading.rollback().await.expect("the reader ends");
    migrate(&migrations, &url).await.expect("tables");
}
