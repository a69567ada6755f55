//! Harness of the PostgreSQL backend: a real server, several nodes, and a clock set by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use seatkeeper_core::{Bucket, Region, Span};
use seatkeeper_registry::conformance::Harness;
use seatkeeper_registry::conformance::rebuilding::Rebuildable;
use seatkeeper_registry::postgres::PostgresRegistry;
use seatkeeper_registry::{Epochs, Rebuild, Registry};
use seatkeeper_testbed::postgres::{Database, database};
use sqlx::{Connection as _, Executor as _, PgConnection};
use tokio::sync::Mutex;

const EPOCH: u64 = 1;
const NODES: usize = 2;
const CONNECTIONS_PER_NODE: u32 = 8;

/// Replaces the clock by a number in a table, for tests only.
pub(crate) const CLOCK_BY_HAND: &str = "
    CREATE TABLE clock_by_hand (millis bigint);
    INSERT INTO clock_by_hand VALUES (1800000000000);
    CREATE OR REPLACE FUNCTION registry.clock() RETURNS bigint LANGUAGE sql VOLATILE
    AS 'SELECT millis FROM clock_by_hand'";

/// Lets every bucket serve, and stores no pool as small.
const SERVING: &str = "
    UPDATE registry.buckets SET epoch = 1, filled_for = 1, serving = true;
    CREATE OR REPLACE FUNCTION registry.small_pool() RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 1'";

/// Several nodes, and a connection that sets the clock.
pub(crate) struct PostgresHarness {
    nodes: Vec<Arc<PostgresRegistry>>,
    epochs: Vec<Arc<Epochs>>,
    next: AtomicUsize,
    hands: Mutex<PgConnection>,
    // Dropped last.
    _database: Database,
}

impl PostgresHarness {
    fn node(&self) -> Arc<PostgresRegistry> {
        Arc::clone(&self.nodes[self.next.fetch_add(1, Ordering::Relaxed) % NODES])
    }

    async fn turn(&self, millis: i64) {
        let turn = sqlx::query("UPDATE clock_by_hand SET millis = millis + $1").bind(millis);
        self.hands.lock().await.execute(turn).await.expect("the clock can be turned");
    }
}

impl Harness for PostgresHarness {
    async fn start(journal_events_max: usize) -> Self {
        let database = tokio::task::spawn_blocking(database).await.expect("a database");
        let (mut nodes, mut all_epochs) = (Vec::new(), Vec::new());
        for _ in 0..NODES {
            let url = database.url().parse().expect("the URL of a database");
            let epochs = Arc::new(Epochs::default());
            Bucket::all().for_each(|bucket| epochs.set(bucket, EPOCH));
            let node = PostgresRegistry::connect(
                &url,
                CONNECTIONS_PER_NODE,
                Arc::clone(&epochs),
                Region::default(),
                journal_events_max,
            );
            nodes.push(Arc::new(node.await.expect("the registry can be opened")));
            all_epochs.push(epochs);
        }
        let mut hands = PgConnection::connect(&database.url()).await.expect("the server answers");
        hands.execute(CLOCK_BY_HAND).await.expect("the clock can be replaced");
        hands.execute(SERVING).await.expect("the buckets can be set");
        Self {
            nodes,
            epochs: all_epochs,
            next: AtomicUsize::new(0),
            hands: Mutex::new(hands),
            _database: database,
        }
    }

    fn registry(&self) -> Arc<dyn Registry> {
        self.node()
    }

    async fn let_pass(&self, span: Span) {
        self.turn(span.as_millis() as i64).await;
    }

    fn ttl(&self) -> Span {
        Span::from_secs(30)
    }

    async fn set_clock_back(&self, span: Span) -> bool {
        self.turn(-(span.as_millis() as i64)).await;
        true
    }
}

impl Rebuildable for PostgresHarness {
    fn rebuild(&self) -> Arc<dyn Rebuild> {
        self.node()
    }

    async fn know(&self, bucket: Bucket, epoch: u64) {
        self.epochs.iter().for_each(|epochs| epochs.set(bucket, epoch));
    }
}
