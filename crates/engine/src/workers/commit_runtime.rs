//! A thread reserved for commits to the ledger.

use std::io;
use std::thread::{self, JoinHandle};

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::CancellationToken;

/// A single-threaded runtime for the drains. A batch takes several answers of the registry and the database.
/// On the main runtime, each answer would queue behind the very requests waiting for the batch.
pub(crate) struct CommitRuntime {
    runtime: Handle,
    stop: CancellationToken,
    /// Taken on drop.
    thread: Option<JoinHandle<()>>,
}

impl CommitRuntime {
    /// Starts the thread.
    pub(crate) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (handle, stop) = (runtime.handle().clone(), CancellationToken::new());
        let stopped = stop.clone().cancelled_owned();
        let thread =
            thread::Builder::new().name("commits".to_owned()).spawn(move || runtime.block_on(stopped))?;
        Ok(Self { runtime: handle, stop, thread: Some(thread) })
    }

    /// Returns the handle for spawning tasks on the thread.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }
}

impl Drop for CommitRuntime {
    /// Ends the thread and drops its tasks. Afterwards another process may open the ledger's directory.
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            // A panicked thread has ended as well.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed expectation fails the test")]

    use std::future::pending;
    use std::sync::Arc;

    use super::*;

    #[test]
    fn nothing_of_what_ran_in_it_is_left_when_it_is_dropped() {
        for _ in 0..100 {
            let (commit_runtime, held) = (CommitRuntime::start().unwrap(), Arc::new(()));
            let holds = Arc::clone(&held);
            commit_runtime.runtime().spawn(async move {
                let _holds = holds;
                pending::<()>().await;
            });
            drop(commit_runtime);
            assert_eq!(Arc::strong_count(&held), 1);
        }
    }
}
