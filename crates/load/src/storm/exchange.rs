//! The connections of a storm: any client may use any of them, and there are only so many.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::Target;
use crate::connection::Connection;

/// How many connections a storm has open at once: most systems let a process have 1,024 files.
const CONNECTIONS_MAX: usize = 400;

/// All connections.
pub(super) struct Exchange {
    nodes: Vec<Node>,
    turn: AtomicUsize,
    lines: Arc<Semaphore>,
}

struct Node {
    target: Arc<Target>,
    idle: Mutex<Vec<Connection>>,
}

/// One of them, taken for one request. Dropped before its answer, it is torn down.
pub(super) struct Line {
    pub(super) connection: Connection,
    node: usize,
    _line: OwnedSemaphorePermit,
}

impl Exchange {
    /// To these nodes, of which there is at least one.
    pub(super) fn new(nodes: Vec<Target>) -> Self {
        let node = |target| Node { target: Arc::new(target), idle: Mutex::default() };
        let lines = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        Self { nodes: nodes.into_iter().map(node).collect(), turn: AtomicUsize::new(0), lines }
    }

    /// What requests are made for; any node takes them.
    pub(super) fn target(&self) -> &Target {
        &self.nodes[0].target
    }

    /// A connection to the next node.
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
