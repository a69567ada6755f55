//! A session that another node admitted is found, wherever it is on its way to the record.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use seatkeeper_core::{Authority, PoolId, SessionId};
use seatkeeper_registry::redis::{FindSession, Found, Settings};
use seatkeeper_registry::{Heartbeat, Registry as _, Share};
use seatkeeper_testbed::redis::Redis;

use crate::node::Node;

/// A record that gets what waits in the journal right after it was first asked.
struct GetsItMeanwhile {
    drain: Arc<Node>,
    pool: PoolId,
    has_it: AtomicBool,
}

#[async_trait]
impl FindSession for GetsItMeanwhile {
    async fn find(&self, _id: SessionId, _who: &Authority) -> Found {
        if self.has_it.swap(true, Ordering::Relaxed) {
            return Found::In(self.pool.clone(), None);
        }
        let read = self.drain.registry.journal_read(Share::All, 10).await.expect("it is reached");
        let last = read.entries.last().expect("the admission waits");
        self.drain.registry.journal_acknowledge(last.receipt).await.expect("it is reached");
        Found::NotOnRecord
    }
}

#[tokio::test]
async fn one_that_gets_on_record_while_it_is_looked_for_is_found() {
    let redis = Redis::start();
    let one = Arc::new(Node::on(&redis).await);
    let pool = one.pool().await;
    let id = one.admit(&pool, "ann").await;
    let record = GetsItMeanwhile { drain: Arc::clone(&one), pool, has_it: AtomicBool::new(false) };
    let servers = redis.url().parse().expect("a URL");
    let other = one.beside_on(servers, Settings::default(), Arc::new(record));
    let renewed = other.renew(id).await.expect("it is reached");
    assert!(matches!(renewed, Heartbeat::Renewed(_)), "{renewed:?}");
}
