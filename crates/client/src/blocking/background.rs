//! The background thread of a client.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::runtime;
use tokio::sync::oneshot;

use super::dispatcher::Dispatcher;
use crate::client::Client;
use crate::error::Error;

/// The time in which the last handle gives every seat back.
const BUDGET: Duration = Duration::from_secs(2);
/// The time for the thread to end beyond [`BUDGET`].
const MARGIN: Duration = Duration::from_millis(100);

/// The thread with the runtime of a client. A drop stops the thread, and waits until every seat is given back.
#[derive(Debug)]
pub(super) struct Background {
    /// A dropped sender stops the thread.
    stop: Option<oneshot::Sender<()>>,
    pub(super) dispatcher: Dispatcher,
    /// The drop does not wait for the thread.
    is_left: AtomicBool,
    /// Closed by the end of the thread.
    ended: Mutex<Receiver<()>>,
    thread: Option<JoinHandle<()>>,
    /// The process that started the thread. A forked child has the handles, and no thread.
    owner: u32,
}

impl Background {
    /// Starts the thread, and builds a client on its runtime.
    pub(super) fn start(builder: crate::ClientBuilder) -> Result<(Client, Self), Error> {
        let (built, result) = channel();
        let (stop, stopped) = oneshot::channel();
        let (ending, ended) = channel();
        let spawned = thread::Builder::new().name("seatkeeper".to_owned()).spawn(move || {
            let _ending = ending;
            let runtime = match runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => {
                    // The program waits for the result.
                    let _ = built.send(Err(Error::Thread(error)));
                    return;
                }
            };
            let serve = async {
                let client = builder.build();
                let kept = client.as_ref().ok().cloned();
                let _ = built.send(client);
                if let Some(client) = kept {
                    // A dropped sender is an error, and the signal to stop.
                    let _ = stopped.await;
                    let _ = tokio::time::timeout(BUDGET, client.close()).await;
                }
            };
            // The runtime panics if the program has closed its descriptors. The shutdown drops the driver also then, and the
            // driver ends the seats and answers the calls.
            let _ = catch_unwind(AssertUnwindSafe(|| runtime.block_on(serve)));
            runtime.shutdown_background();
        });
        let thread = Some(spawned.map_err(Error::Thread)?);
        let client = result.recv().map_err(|_| Error::Closed)??;
        let (dispatcher, is_left) = (Dispatcher::default(), AtomicBool::new(false));
        let (ended, owner) = (Mutex::new(ended), std::process::id());
        Ok((client, Self { stop: Some(stop), dispatcher, is_left, ended, thread, owner }))
    }

    pub(super) fn owner(&self) -> u32 {
        self.owner
    }

    /// Fails with [`Error::NotOwner`] in a forked child, where a call would wait for a thread that is not there.
    pub(super) fn check_owner(&self) -> Result<(), Error> {
        if self.owner == std::process::id() { Ok(()) } else { Err(Error::NotOwner) }
    }

    /// Leaves the thread to itself: the drop stops the thread, and does not wait.
    pub(super) fn leave(&self) {
        self.is_left.store(true, Ordering::Relaxed);
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if self.check_owner().is_err() {
            // The thread and its wake-ups are those of the parent.
            std::mem::forget((self.stop.take(), self.thread.take()));
            return;
        }
        self.stop = None;
        let patience = if *self.is_left.get_mut() { Duration::ZERO } else { BUDGET + MARGIN };
        // The thread itself drops the last handle if a token source owned one: the thread cannot wait for its own end.
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
            && let Ok(ended) = self.ended.get_mut()
            && ended.recv_timeout(patience) == Err(RecvTimeoutError::Disconnected)
        {
            // The thread has closed the channel, and ends at once. A panic is no news: later calls fail with `Closed`.
            let _ = thread.join();
        }
    }
}
