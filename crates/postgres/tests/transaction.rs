//! Transactions dropped at every await point.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use seatkeeper_postgres::{Connections, PostgresUrl, Transaction};
use seatkeeper_testbed::postgres::Postgres;
use sqlx::postgres::PgPoolOptions;
use sqlx::{Connection as _, Executor as _, PgConnection};

/// Most polls of a transaction before the drop. With the maximum the transaction commits.
const POLLS_MAX: usize = 40;

/// The application name of the connection, and the query for its state: `idle` without an open transaction.
const NAME: &str = "given up";
const STATE: &str = "SELECT state FROM pg_stat_activity WHERE application_name = $1";

/// Polls `future` at most `times` times, and drops the rest.
async fn poll(future: impl Future, mut times: usize) {
    let mut future = pin!(future);
    poll_fn(|cx| match times.checked_sub(1) {
        None => Poll::Ready(()),
        Some(left) => {
            times = left;
            future.as_mut().poll(cx).map(drop)
        }
    })
    .await;
}

/// A transaction dropped at any point has ended before the connection's next use, completely done or not at
/// all.
#[tokio::test]
async fn what_is_given_up_does_not_go_on_for_whoever_has_the_connection_next() {
    let postgres = Postgres::start_with(&[]);
    let address = postgres.url(&postgres.add_database());
    let url: PostgresUrl = address.parse().expect("a URL");
    // A single connection, so that every use gets the same connection.
    let one = PgPoolOptions::new().max_connections(1);
    let connections = Connections::lazy(&url, one, NAME, &[]).expect("it is not connected yet");
    let mut watcher = PgConnection::connect(&address).await.expect("a server");
    let mut first = connections.acquire().await.expect("a server");
    first.execute("CREATE TABLE t (a int, b int)").await.expect("a table");
    drop(first);
    for polls in 0..POLLS_MAX {
        let given_up = async {
            let mut transaction = Transaction::begin(connections.acquire().await?, "BEGIN").await?;
            transaction.execute("INSERT INTO t (a) VALUES (1)").await?;
            transaction.execute("INSERT INTO t (b) VALUES (1)").await?;
            transaction.commit().await
        };
        poll(given_up, polls).await;
        let mut next = connections.acquire().await.expect("a connection");
        next.ping().await.expect("it is usable");
        let state: String =
            sqlx::query_scalar(STATE).bind(NAME).fetch_one(&mut watcher).await.expect("it is there");
        assert_eq!(state, "idle", "given up after {polls} polls");
        let halves: (i64, i64) = sqlx::query_as("SELECT count(a), count(b) FROM t")
            .fetch_one(&mut *next)
            .await
            .expect("an answer");
        assert_eq!(halves.0, halves.1, "given up after {polls} polls");
    }
}
