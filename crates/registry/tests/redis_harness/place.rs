//! Servers of a harness, with a clock set by hand.

use std::sync::Arc;

use seatkeeper_testbed::clock::Clock;
use seatkeeper_testbed::redis::{Redis, RedisSetup};

/// A deployment of empty servers.
pub(crate) trait Deployment: Send + Sync {
    fn start() -> Self;
    fn url(&self) -> String;
    fn clock(&self) -> &Clock;
}

/// A single server.
pub(crate) struct OneServer {
    redis: Redis,
    clock: Arc<Clock>,
}

impl Deployment for OneServer {
    fn start() -> Self {
        let clock = Arc::new(Clock::new());
        Self { redis: RedisSetup::default().clock(&clock).start(), clock }
    }

    fn url(&self) -> String {
        self.redis.url()
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }
}
