//! A thread that does nothing but put events on record.

use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use seatkeeper_core::Event;
use seatkeeper_ledger::Ledger;
use tokio::runtime::{Builder, Handle};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::AbortOnDropHandle;

use crate::error::Error;

/// Puts events on record, in a thread of its own: a commit takes several answers of the database, and each of them would
/// wait for its turn behind all the requests that wait for the commit.
pub(crate) struct Recorder {
    ledger: Ledger,
    thread: Handle,
    _until_dropped: DropGuard,
}

impl Recorder {
    /// Starts it. The thread ends when this is dropped.
    pub(crate) fn start(ledger: &Ledger) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (thread, stop) = (runtime.handle().clone(), CancellationToken::new());
        let stopped = stop.clone().cancelled_owned();
        thread::Builder::new().name("recorder".to_owned()).spawn(move || runtime.block_on(stopped))?;
        Ok(Self { ledger: ledger.apart(), thread, _until_dropped: stop.drop_guard() })
    }

    /// How many batches it can apply at the same time.
    pub(crate) fn commits_at_once(&self) -> usize {
        self.ledger.commits_at_once()
    }

    /// As [`Ledger::apply`].
    pub(crate) async fn apply(&self, events: &Arc<Vec<Event>>) -> Result<Vec<bool>, Error> {
        let (ledger, events) = (self.ledger.clone(), Arc::clone(events));
        let applied = self.thread.spawn(async move { ledger.apply(&events).await });
        match AbortOnDropHandle::new(applied).await {
            Ok(applied) => applied.map_err(Error::Ledger),
            Err(gone) => match gone.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                Err(_) => Err(Error::NotDurable),
            },
        }
    }

    /// Closes the connections that it writes through.
    pub(crate) async fn close(&self) {
        self.ledger.close().await;
    }
}
