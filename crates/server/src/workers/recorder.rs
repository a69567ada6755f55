//! A thread that does nothing but put events on record.

use std::io;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::{CancellationToken, DropGuard};

/// A thread for those who put events on record: a batch takes several answers of the registry and of the database, and each
/// of them would wait for its turn behind all the requests that wait for the batch.
pub(crate) struct Recorder {
    runtime: Handle,
    _until_dropped: DropGuard,
}

impl Recorder {
    /// Starts it. The thread ends when this is dropped.
    pub(crate) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (handle, stop) = (runtime.handle().clone(), CancellationToken::new());
        let stopped = stop.clone().cancelled_owned();
        thread::Builder::new().name("recorder".to_owned()).spawn(move || runtime.block_on(stopped))?;
        Ok(Self { runtime: handle, _until_dropped: stop.drop_guard() })
    }

    /// What runs in the thread.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }
}
