//! The connections of a storm: any client may use any of them, and there are only so many.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::Target;
use crate::connection::Connection;

/// How many connections a storm has open at once: most systems let a process have 1,024 files.
const CONNECTIONS_MAX: usize = 400;

/// All connections.
pub(super) struct Exchange {
    target: Arc<Target>,
    idle: Mutex<Vec<Connection>>,
    lines: Arc<Semaphore>,
}

/// One of them, taken for one request. Dropped before its answer, it is torn down.
pub(super) struct Line {
    pub(super) connection: Connection,
    _line: OwnedSemaphorePermit,
}

impl Exchange {
    pub(super) fn new(target: Arc<Target>) -> Self {
        let lines = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        Self { target, idle: Mutex::default(), lines }
    }

    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    pub(super) async fn line(&self) -> Line {
        #[expect(clippy::expect_used, reason = "the semaphore is never closed")]
        let line = self.lines.clone().acquire_owned().await.expect("open");
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = idle.unwrap_or_else(|| Connection::to(self.target.clone()));
        Line { connection, _line: line }
    }

    pub(super) fn hang_up(&self, line: Line) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(line.connection);
    }
}
