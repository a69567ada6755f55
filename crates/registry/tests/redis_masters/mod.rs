//! A cluster of a harness, with a clock set by hand.

use std::sync::Arc;

use parking_lot::Mutex;
use seatkeeper_testbed::clock::Clock;
use seatkeeper_testbed::redis::{RedisCluster, RedisSetup};

use crate::redis_harness::Deployment;

/// A cluster of three masters. A cluster takes seconds to start, so a finished test leaves its cluster to the
/// next test.
pub(crate) struct Masters(Option<Cluster>);

struct Cluster {
    masters: RedisCluster,
    clock: Arc<Clock>,
}

static LEFT: Mutex<Vec<Cluster>> = Mutex::new(Vec::new());

impl Masters {
    fn cluster(&self) -> &Cluster {
        self.0.as_ref().expect("it is left when this is dropped")
    }
}

impl Deployment for Masters {
    fn start() -> Self {
        let left = LEFT.lock().pop();
        let cluster = left.unwrap_or_else(|| {
            let clock = Arc::new(Clock::new());
            Cluster { masters: RedisCluster::start(3, &RedisSetup::default().clock(&clock)), clock }
        });
        for master in cluster.masters.nodes() {
            master.ask::<()>(redis::cmd("FLUSHALL"));
        }
        Self(Some(cluster))
    }

    fn url(&self) -> String {
        // The client discovers the cluster from a single node.
        format!("redis+cluster://127.0.0.1:{}", self.cluster().masters.nodes()[0].port())
    }

    fn clock(&self) -> &Clock {
        &self.cluster().clock
    }
}

impl Drop for Masters {
    fn drop(&mut self) {
        LEFT.lock().extend(self.0.take());
    }
}
