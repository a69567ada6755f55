//! Harness of the Redis backend: servers per test, with a clock set by hand.

mod place;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use seatkeeper_core::{Bucket, RegistryTime, Span};
use seatkeeper_redis::Servers;
use seatkeeper_registry::conformance::Harness;
use seatkeeper_registry::conformance::rebuilding::Rebuildable;
use seatkeeper_registry::redis::{NoRecord, RedisRegistry, Settings};
use seatkeeper_registry::{Epochs, Rebuild, Registry};
use tokio::time::Instant;

pub(crate) use place::{Deployment, OneServer};

const EPOCH: u64 = 1;

/// Deadline for a node to reach its servers.
const REACHED_MAX: Duration = Duration::from_secs(30);

/// Servers with `COUNT` nodes, which take turns.
pub(crate) struct Nodes<const COUNT: usize, P: Deployment = OneServer> {
    nodes: Vec<Arc<RedisRegistry>>,
    epochs: Arc<Epochs>,
    turn: AtomicUsize,
    place: P,
}

impl<const COUNT: usize, P: Deployment> Harness for Nodes<COUNT, P> {
    async fn start(journal_events_max: usize) -> Self {
        let place = P::start();
        let mut settings = Settings { journal_events_max, ..Settings::default() };
        if COUNT > 1 {
            // Each node sees the changes of the previous node at once.
            settings.journal_poll = Duration::ZERO;
            settings.journal_linger = Duration::ZERO;
        }
        let epochs = Arc::new(Epochs::default());
        let nodes = served_by(COUNT, &place.url(), &settings, &epochs).await;
        Self { nodes, epochs, turn: AtomicUsize::new(0), place }
    }

    fn registry(&self) -> Arc<dyn Registry> {
        self.node()
    }

    async fn let_pass(&self, span: Span) {
        self.place.clock().advance(Duration::from_millis(span.as_millis()));
    }

    fn ttl(&self) -> Span {
        Span::from_secs(30)
    }

    async fn set_clock_back(&self, span: Span) -> bool {
        self.place.clock().set_back(Duration::from_millis(span.as_millis()));
        true
    }
}

impl<const COUNT: usize, P: Deployment> Rebuildable for Nodes<COUNT, P> {
    fn rebuild(&self) -> Arc<dyn Rebuild> {
        self.node()
    }

    async fn know(&self, bucket: Bucket, epoch: u64) {
        self.epochs.set(bucket, epoch);
    }
}

impl<const COUNT: usize, P: Deployment> Nodes<COUNT, P> {
    fn node(&self) -> Arc<RedisRegistry> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        Arc::clone(&self.nodes[turn % COUNT])
    }
}

/// Starts `nodes` nodes that serve every bucket of empty servers.
pub(crate) async fn served_by(
    nodes: usize,
    url: &str,
    settings: &Settings,
    epochs: &Arc<Epochs>,
) -> Vec<Arc<RedisRegistry>> {
    let node = || {
        let servers = Servers::new(url.parse().expect("a URL"));
        Arc::new(RedisRegistry::new(servers, settings.clone(), Arc::clone(epochs), Arc::new(NoRecord)))
    };
    let nodes: Vec<_> = (0..nodes).map(|_| node()).collect();
    fill_with_nothing(&nodes[0]).await;
    for bucket in Bucket::all() {
        epochs.set(bucket, EPOCH);
    }
    nodes
}

async fn fill_with_nothing(node: &RedisRegistry) {
    let started = Instant::now();
    let conditions = loop {
        let conditions = node.conditions().await;
        if conditions.iter().all(|condition| condition.server.is_some()) {
            break conditions;
        }
        assert!(started.elapsed() < REACHED_MAX, "not all servers can be reached: {conditions:?}");
    };
    join_all(conditions.iter().map(|condition| async {
        let bucket = condition.bucket;
        node.rebuild_begin(bucket, EPOCH).await.expect("nobody else rebuilds");
        node.rebuild_clear(bucket, EPOCH, RegistryTime::default()).await.expect("it has begun");
        node.rebuild_finish(bucket, EPOCH, condition.server.as_ref()).await.expect("it has begun");
    }))
    .await;
}
