//! The connection pool of a storm. Every client may use every connection, and their number is bounded.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use seatkeeper_load::{Connection, Target};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most open connections of a storm: most systems let a process have 1,024 open files.
const CONNECTIONS_MAX: usize = 400;

/// The connection pool.
pub(super) struct Exchange {
    nodes: Vec<Node>,
    turn: AtomicUsize,
    lines: Arc<Semaphore>,
}

struct Node {
    target: Arc<Target>,
    idle: Mutex<Vec<Connection>>,
}

/// A connection taken from the pool for a request. A `Line` dropped before its answer tears the connection
/// down.
pub(super) struct Line {
    pub(super) connection: Connection,
    node: usize,
    _line: OwnedSemaphorePermit,
}

impl Exchange {
    /// Returns the pool for `nodes`, which must not be empty.
    pub(super) fn new(nodes: Vec<Target>) -> Self {
        let node = |target| Node { target: Arc::new(target), idle: Mutex::default() };
        let lines = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        Self { nodes: nodes.into_iter().map(node).collect(), turn: AtomicUsize::new(0), lines }
    }

    /// Returns the target for building requests. Any node accepts them.
    pub(super) fn target(&self) -> &Target {
        &self.nodes[0].target
    }

    /// Takes a connection to the next node, waiting for a free one.
    pub(super) async fn line(&self) -> Line {
        #[expect(clippy::expect_used, reason = "the semaphore is never closed")]
        let line = self.lines.clone().acquire_owned().await.expect("open");
        let node = self.turn.fetch_add(1, Ordering::Relaxed) % self.nodes.len();
        let Node { target, idle } = &self.nodes[node];
        let idle = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = idle.unwrap_or_else(|| Connection::to(target.clone()));
        Line { connection, node, _line: line }
    }

    pub(super) fn hang_up(&self, line: Line) {
        let idle = &self.nodes[line.node].idle;
        idle.lock().unwrap_or_else(PoisonError::into_inner).push(line.connection);
    }
}
