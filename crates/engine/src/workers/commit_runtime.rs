//! A thread that does nothing but put events on record.

use std::io;
use std::thread::{self, JoinHandle};

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::CancellationToken;

/// A thread for those who put events on record: a batch takes several answers of the registry and of the database, and each
/// of them would wait for its turn behind all the requests that wait for the batch.
pub(crate) struct CommitRuntime {
    runtime: Handle,
    stop: CancellationToken,
    /// Taken when this is dropped.
    thread: Option<JoinHandle<()>>,
}

impl CommitRuntime {
    /// Starts it.
    pub(crate) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (handle, stop) = (runtime.handle().clone(), CancellationToken::new());
        let stopped = stop.clone().cancelled_owned();
        let thread =
            thread::Builder::new().name("recorder".to_owned()).spawn(move || runtime.block_on(stopped))?;
        Ok(Self { runtime: handle, stop, thread: Some(thread) })
    }

    /// What runs in the thread.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }
}

impl Drop for CommitRuntime {
    /// The thread ends, and all that ran in it is gone: a ledger in a directory may be opened by another.
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            // One that panicked is gone as well.
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
            let (recorder, held) = (CommitRuntime::start().unwrap(), Arc::new(()));
            let holds = Arc::clone(&held);
            recorder.runtime().spawn(async move {
                let _holds = holds;
                pending::<()>().await;
            });
            drop(recorder);
            assert_eq!(Arc::strong_count(&held), 1);
        }
    }
}
