//! Calls whose connection is lost without an error: the server gets the statement, and no answer comes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use seatkeeper_core::{PoolId, PoolKind, Region, RegistryTime, TenantId};
use seatkeeper_registry::postgres::PostgresRegistry;
use seatkeeper_registry::{Epochs, Error, Filling, Journal as _, Rebuild as _, Receipt, State};
use seatkeeper_testbed::postgres::{Database, database};
use seatkeeper_testbed::proxy::{Network, Proxy};
use sqlx::{Connection as _, Executor as _, PgConnection};
use tokio::time::{Instant, sleep, timeout};

const EPOCH: u64 = 7;

/// A connection for each call of a test.
const CONNECTIONS: u32 = 9;

/// Longer than the time limit of a short statement, on a busy machine.
const GIVEN_UP_WITHIN: Duration = Duration::from_secs(30);

/// Longer than the time limit of a statement that may wait for a bucket's lock, on a busy machine.
const LONG_GIVEN_UP_WITHIN: Duration = Duration::from_secs(90);

/// The time between two uses of a connection: enough to return to the pool, and too short for a ping before the next use.
const RETURNED_WITHIN: Duration = Duration::from_millis(200);

/// Less than the time limit of a statement.
const UNDERWAY: Duration = Duration::from_secs(2);

/// The processes of PostgreSQL with a statement of the registry since a time.
const PROCESSES: &str = "SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'seatkeeper registry' AND query_start > $1::timestamptz";

const WAITING: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'";

/// A registry behind a proxy, and a connection that passes the proxy by.
struct Behind {
    registry: Arc<PostgresRegistry>,
    proxy: Proxy,
    observer: PgConnection,
    // Dropped last.
    database: Database,
}

impl Behind {
    async fn start() -> Self {
        let database = tokio::task::spawn_blocking(database).await.expect("a database");
        let url = database.url();
        let (host, name) = url.rsplit_once('/').expect("the name of a database");
        let (host, port) = host.rsplit_once(':').expect("a port");
        let server = SocketAddr::from(([127, 0, 0, 1], port.parse().expect("a port")));
        let proxy = Proxy::start(server, 1).await;
        let through = format!("{host}:{}/{name}", proxy.address().port()).parse().expect("a URL");
        let epochs = Arc::new(Epochs::default());
        let registry =
            PostgresRegistry::connect(&through, CONNECTIONS, epochs, Region::default(), 1_000).await;
        let observer = PgConnection::connect(&url).await.expect("the server answers");
        Self { registry: Arc::new(registry.expect("the registry can be opened")), proxy, observer, database }
    }

    async fn now(&mut self) -> String {
        let now = sqlx::query_scalar("SELECT clock_timestamp()::text").fetch_one(&mut self.observer);
        now.await.expect("a time")
    }

    async fn processes_since(&mut self, since: &str) -> Vec<i32> {
        let processes = sqlx::query_scalar(PROCESSES).bind(since).fetch_all(&mut self.observer);
        processes.await.expect("the processes")
    }
}

fn pool() -> PoolId {
    PoolId::new(PoolKind::License, TenantId::from("tenant"), "pool")
}

fn filling(pool: &PoolId) -> Filling<'_> {
    Filling { pool, seq: 0, terms: None, live: &[] }
}

#[tokio::test]
async fn a_call_without_an_answer_ends_and_its_connection_serves_no_other_call() {
    let mut behind = Behind::start().await;
    let (registry, pool) = (Arc::clone(&behind.registry), pool());
    let (bucket, position) = (pool.bucket(), 1);
    join_all((0..CONNECTIONS).map(|_| registry.conditions())).await;
    sleep(RETURNED_WITHIN).await;
    behind.proxy.set(Network::AnswersWait);
    let since = behind.now().await;

    let rebuild = async {
        tokio::join!(
            registry.rebuild_begin(bucket, EPOCH),
            registry.rebuild_clear(bucket, EPOCH, RegistryTime::default()),
            registry.rebuild_fill(EPOCH, filling(&pool)),
            registry.rebuild_finish(bucket, EPOCH, None),
            registry.journal_acknowledge(Receipt { bucket, epoch: EPOCH, position }),
        )
    };
    let reads = async {
        tokio::join!(
            registry.conditions(),
            registry.rebuild_journal(bucket, EPOCH, None, 10),
            registry.journal_read(10),
            registry.journal_end(bucket),
        )
    };
    let lost = async {
        sleep(UNDERWAY).await;
        behind.processes_since(&since).await
    };
    let calls = async { tokio::join!(rebuild, reads) };
    let (calls, lost) = tokio::join!(timeout(GIVEN_UP_WITHIN, calls), lost);
    assert!(!lost.is_empty(), "statements reach the server");
    let ((begin, clear, fill, finish, acknowledge), (conditions, rebuild_journal, journal, end)) =
        calls.expect("no call hangs");
    for made in [begin, clear, fill, finish, acknowledge, rebuild_journal.map(drop), journal.map(drop)] {
        assert!(matches!(made, Err(Error::TimedOut | Error::Unavailable(_))), "{made:?}");
    }
    assert!(matches!(end, Err(Error::TimedOut | Error::Unavailable(_))), "{end:?}");
    assert!(conditions.iter().all(|condition| matches!(condition.state, State::Unreachable)));

    behind.proxy.set(Network::Well);
    registry.journal_read(10).await.expect("a new connection");
    let deadline = Instant::now() + GIVEN_UP_WITHIN;
    while behind.processes_since(&since).await.iter().any(|process| lost.contains(process)) {
        assert!(Instant::now() < deadline, "a connection with a lost answer is in use again");
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_fill_that_waited_for_the_bucket_and_gets_no_answer_ends() {
    let mut behind = Behind::start().await;
    let (registry, pool) = (Arc::clone(&behind.registry), pool());
    registry.rebuild_begin(pool.bucket(), EPOCH).await.expect("a rebuild can begin");
    behind.observer.execute("BEGIN").await.expect("a transaction");
    let lock = sqlx::query("SELECT FROM registry.buckets WHERE bucket = $1 FOR UPDATE");
    let lock = lock.bind(pool.bucket().number().cast_signed());
    behind.observer.execute(lock).await.expect("the lock of the bucket");

    let fill = tokio::spawn(async move { registry.rebuild_fill(EPOCH, filling(&pool)).await });
    let mut statistics =
        PgConnection::connect(&behind.database.url()).await.expect("statistics stand still in a transaction");
    let deadline = Instant::now() + GIVEN_UP_WITHIN;
    while sqlx::query_scalar::<_, i64>(WAITING).fetch_one(&mut statistics).await.expect("a count") == 0 {
        assert!(Instant::now() < deadline, "the fill does not wait for the bucket");
        sleep(Duration::from_millis(5)).await;
    }
    behind.proxy.set(Network::AnswersWait);
    behind.observer.execute("COMMIT").await.expect("a commit");
    let filled = timeout(LONG_GIVEN_UP_WITHIN, fill).await.expect("the fill ends").expect("no panic");
    assert!(matches!(filled, Err(Error::TimedOut)), "{filled:?}");
}
