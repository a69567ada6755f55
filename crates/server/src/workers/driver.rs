//! Runs workers: timers, wake-ups, failures and shutdown.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::error::Error;

/// The first pause after a failure; it doubles with each, up to [`RETRY_PAUSE_MAX`].
const RETRY_PAUSE_MIN: Duration = Duration::from_millis(50);
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(5);

/// How long a worker may go on with what is left when the server stops.
const LAST_ROUND_MAX: Duration = Duration::from_secs(10);

/// Whether a worker left something undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    Nothing,
    More,
    /// More, and what else the server does goes first for so long, unless the worker is hurried.
    Later(Duration),
}

/// One kind of background work.
#[async_trait]
pub(crate) trait Worker: Send + Sync + 'static {
    /// Its name in the log.
    fn name(&self) -> &'static str;

    /// How long it rests when nothing is left and nothing wakes it.
    fn rest(&self) -> Duration;

    /// Does at most a batch.
    async fn activate(&self) -> Result<Left, Error>;

    /// Whether it must do all that is left before the server stops; else one batch will do.
    fn must_finish(&self) -> bool {
        false
    }

    /// Returns when there may be something to do before the rest is over.
    async fn woken(&self) {
        std::future::pending().await
    }

    /// Returns when somebody waits for what was left for later.
    async fn hurried(&self) {
        std::future::pending().await
    }
}

/// Workers that start one by one and stop together.
pub(crate) struct Crew {
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Crew {
    pub(crate) fn new() -> Self {
        Self { tasks: TaskTracker::new(), stop: CancellationToken::new() }
    }

    /// Starts a worker.
    pub(crate) fn start(&self, worker: impl Worker) {
        self.tasks.spawn(drive(worker, self.stop.clone()));
    }

    /// Starts a worker in this runtime.
    pub(crate) fn start_on(&self, runtime: &Handle, worker: impl Worker) {
        self.tasks.spawn_on(drive(worker, self.stop.clone()), runtime);
    }

    /// Cancelled when the crew is to stop.
    pub(crate) fn stopping(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Lets each worker do what is left, and waits for all.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

async fn drive(worker: impl Worker, stop: CancellationToken) {
    let mut retry_pause = RETRY_PAUSE_MIN;
    while !stop.is_cancelled() {
        match attempt(&worker).await {
            Some(Left::More) => {
                retry_pause = RETRY_PAUSE_MIN;
                tokio::task::yield_now().await;
            }
            Some(Left::Later(pause)) => {
                retry_pause = RETRY_PAUSE_MIN;
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = worker.hurried() => {}
                    () = stop.cancelled() => {}
                }
            }
            Some(Left::Nothing) => {
                retry_pause = RETRY_PAUSE_MIN;
                tokio::select! {
                    () = tokio::time::sleep(worker.rest()) => {}
                    () = worker.woken() => {}
                    () = stop.cancelled() => {}
                }
            }
            None => {
                tokio::select! {
                    () = tokio::time::sleep(retry_pause) => {}
                    () = stop.cancelled() => {}
                }
                retry_pause = (retry_pause * 2).min(RETRY_PAUSE_MAX);
            }
        }
    }
    if tokio::time::timeout(LAST_ROUND_MAX, finish(&worker)).await.is_err() {
        tracing::error!(worker = worker.name(), "a worker did not finish in time");
    }
}

async fn finish(worker: &impl Worker) {
    loop {
        match attempt(worker).await {
            Some(Left::More | Left::Later(_)) if worker.must_finish() => {}
            Some(Left::More | Left::Later(_) | Left::Nothing) => return,
            None => tokio::time::sleep(RETRY_PAUSE_MIN).await,
        }
    }
}

/// One batch; none if it failed, which the log then says. A panic fails a batch and not the worker.
async fn attempt(worker: &impl Worker) -> Option<Left> {
    match AssertUnwindSafe(worker.activate()).catch_unwind().await {
        Ok(Ok(left)) => Some(left),
        Ok(Err(error)) => {
            let causes = error.with_causes();
            tracing::error!(worker = worker.name(), %causes, "a worker failed; it will try again");
            None
        }
        Err(_) => {
            tracing::error!(worker = worker.name(), "a worker panicked; it will try again");
            None
        }
    }
}

#[cfg(test)]
mod tests;
