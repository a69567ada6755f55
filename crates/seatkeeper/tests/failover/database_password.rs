//! The password of PostgreSQL changes under load. A client gets at most a 503 with a retry, and only if its
//! connection was ended.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use seatkeeper_testbed::postgres;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use super::support::{Nodes, seat};
use super::tally::{Tally, machines, refused, some_are_done};

/// The variable with the path of a node's password file.
const PASSWORD_FILE: &str = "SEATKEEPER_LEDGER_PASSWORD_FILE";

/// The database user of the nodes, reserved for this test: tests share the server.
const USER: &str = "seatkeeper_by_password";

/// The number of machines at each node. Every machine takes and releases seats throughout the test.
const MACHINES: usize = 3;

/// The number of password changes.
const CHANGES: usize = 3;

/// The number of password changes before which no request may be refused. On a busy machine a node may stand
/// still.
const QUIET_CHANGES_MIN: usize = 2;

/// A node uses an idle connection that was ended within this time, and notices the end by a failed request.
const NOTICED_WITHIN: Duration = Duration::from_secs(1);

/// Time limit for requests to be served at once again after a password change.
const CALM_WITHIN: Duration = Duration::from_secs(60);

/// The time for which the file holds an outdated password.
const WRONG: Duration = Duration::from_secs(1);

/// Ends the connections made with the old password, and counts them.
const END_CONNECTIONS: &str =
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'seatkeeper_by_password'";

/// Waits until some requests are done and none is refused for [`NOTICED_WITHIN`]. Returns the number of
/// requests refused before.
async fn refused_until_calm(tallies: &[Tally]) -> usize {
    let (started, mut since, mut all) = (Instant::now(), Instant::now(), 0);
    while since.elapsed() < NOTICED_WITHIN {
        some_are_done(tallies).await;
        let some = refused(tallies);
        if some > 0 {
            (since, all) = (Instant::now(), all + some);
        }
        assert!(started.elapsed() < CALM_WITHIN, "{all} requests were refused, and there is no end to it");
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_of_the_database_is_changed_under_load() {
    let (database, dir) = (postgres::database(), tempfile::tempdir().expect("a directory"));
    let mut owner = PgConnection::connect(&database.url()).await.expect("a connection");
    let file = dir.path().join("password");
    let write = |password: &str| fs::write(&file, format!("{password}\n")).expect("it is written");
    let mut change_to = async |password: &str| {
        let statement = AssertSqlSafe(format!("ALTER ROLE {USER} PASSWORD '{password}'"));
        sqlx::query(statement).execute(&mut owner).await.expect("the owner may do it");
        sqlx::query_scalar::<_, i64>(END_CONNECTIONS).fetch_one(&mut owner).await.expect("a count")
    };
    write("password-0");
    let nodes_url = database.for_user(USER, "password-0").replacen('@', ":not-this-one@", 1);
    let mut nodes = Nodes::on(nodes_url.clone());
    for _ in 0..2 {
        nodes.add_in(&[(PASSWORD_FILE, file.clone())], &nodes_url);
    }
    let (license, clients) = (nodes.harnesses[0].license(100).await, nodes.clients());
    let key = &license["license_key"];
    let held = seat(&clients[0], &license, "held").await;

    let is_over = AtomicBool::new(false);
    let tallies: Vec<_> = (0..clients.len() * MACHINES).map(|_| Tally::default()).collect();
    let at_work = machines(&tallies, &clients, key, &held, &is_over);
    let story = async {
        let mut quiet = 0;
        for change in 1..=CHANGES {
            let password = format!("password-{change}");
            write(&password);
            some_are_done(&tallies).await;
            let before = refused(&tallies);
            quiet += usize::from(before == 0);
            let ended = change_to(&password).await;
            let asked_again = refused_until_calm(&tallies).await;
            println!(
                "change {change}: {before} refused before it, {ended} connections ended, {asked_again} asked again"
            );
            // Only a request that waited for an ended connection may be refused.
            assert!(asked_again <= usize::try_from(ended).expect("a count"), "{asked_again} of {ended}");
        }
        assert!(
            quiet >= QUIET_CHANGES_MIN,
            "refused before anything was lost, in all but {quiet} of {CHANGES} changes"
        );
        // In the opposite order both passwords are wrong for a while. The nodes recover by themselves.
        change_to("password-last").await;
        tokio::time::sleep(WRONG).await;
        write("password-last");
        some_are_done(&tallies).await;
        is_over.store(true, Relaxed);
    };
    tokio::join!(story, at_work);
    clients[1].heartbeat(&held).await.expect(200);
    drop(nodes.close());
}
