//! Background work: the driver of all workers, with timers, wake-ups, retries and shutdown.
//!
//! A worker reads the current state, does at most one batch, and reports the work left. A wake-up and the
//! timer run the same code, so a lost or spurious wake-up is harmless.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::error::with_causes;

/// The first pause before a retry. The backoff doubles with each failure, up to [`Worker::retry_pause_max`].
const RETRY_PAUSE_MIN: Duration = Duration::from_millis(50);
/// The longest pause before a retry, unless a worker says otherwise.
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(5);

/// The time that a worker has at shutdown for its current round and its last round together.
const LAST_ROUND_MAX: Duration = Duration::from_secs(10);

/// The work left after a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing is left.
    Idle,
    /// More is left: the next batch follows at once.
    More,
    /// More is left and may wait for this long, unless [`Worker::hurried`] returns earlier. Other work goes
    /// first.
    Defer(Duration),
}

/// A kind of background work.
#[async_trait]
pub trait Worker: Send + Sync + 'static {
    /// The reason why a batch failed. The driver logs the error and retries.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Returns the name of the worker in the log.
    fn name(&self) -> &'static str;

    /// Returns the longest rest of an idle worker. A wake-up ends the rest.
    fn rest(&self) -> Duration;

    /// Returns the longest pause after a failure.
    fn retry_pause_max(&self) -> Duration {
        RETRY_PAUSE_MAX
    }

    /// Does at most one batch.
    async fn activate(&self) -> Result<Progress, Self::Error>;

    /// Returns whether the worker has to finish every batch at shutdown. By default a single batch is enough.
    fn must_finish(&self) -> bool {
        false
    }

    /// Waits for a wake-up during the rest. Wake-ups may be spurious.
    async fn woken(&self) {
        std::future::pending().await
    }

    /// Waits until deferred work becomes urgent.
    async fn hurried(&self) {
        std::future::pending().await
    }
}

/// A set of workers, started separately and stopped together.
pub struct WorkerSet {
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Default for WorkerSet {
    fn default() -> Self {
        Self::new()
    }
}

impl WorkerSet {
    /// Returns a set without workers.
    pub fn new() -> Self {
        Self { tasks: TaskTracker::new(), stop: CancellationToken::new() }
    }

    /// Starts a worker.
    pub fn start(&self, worker: impl Worker) {
        self.tasks.spawn(drive(worker, self.stop.clone()));
    }

    /// Returns the token that is cancelled at shutdown.
    pub fn stopping(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Stops every worker after its last round, and waits for the workers to end.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

async fn drive(worker: impl Worker, stop: CancellationToken) {
    let time_is_up = async {
        stop.cancelled().await;
        tokio::time::sleep(LAST_ROUND_MAX).await;
    };
    tokio::select! {
        () = work(&worker, &stop) => {}
        () = time_is_up => tracing::error!(
            worker = worker.name(),
            "a worker did not finish within 10 s of the stop: its remaining work is left"
        ),
    }
}

/// Does batches until the stop, and then the last batches.
async fn work(worker: &impl Worker, stop: &CancellationToken) {
    let (mut retry_pause, mut is_failing) = (RETRY_PAUSE_MIN, false);
    while !stop.is_cancelled() {
        let attempted = attempt(worker, is_failing).await;
        if attempted.is_some() {
            if is_failing {
                tracing::info!(worker = worker.name(), "a worker that failed works again");
            }
            (retry_pause, is_failing) = (RETRY_PAUSE_MIN, false);
        }
        match attempted {
            Some(Progress::More) => tokio::task::yield_now().await,
            Some(Progress::Defer(pause)) => {
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = worker.hurried() => {}
                    () = stop.cancelled() => {}
                }
            }
            Some(Progress::Idle) => {
                tokio::select! {
                    () = tokio::time::sleep(worker.rest()) => {}
                    () = worker.woken() => {}
                    () = stop.cancelled() => {}
                }
            }
            None => {
                is_failing = true;
                tokio::select! {
                    () = tokio::time::sleep(retry_pause) => {}
                    () = stop.cancelled() => {}
                }
                retry_pause = (retry_pause * 2).min(worker.retry_pause_max());
            }
        }
    }
    finish(worker).await;
}

async fn finish(worker: &impl Worker) {
    loop {
        match attempt(worker, false).await {
            Some(Progress::More | Progress::Defer(_)) if worker.must_finish() => {}
            Some(Progress::More | Progress::Defer(_) | Progress::Idle) => return,
            None => tokio::time::sleep(RETRY_PAUSE_MIN).await,
        }
    }
}

/// Does one batch. Returns `None` if the batch failed; a panic fails the batch, not the worker. The first
/// failure is logged as an error, and failures after it (`was_failing`) at the level `debug`.
async fn attempt(worker: &impl Worker, was_failing: bool) -> Option<Progress> {
    match AssertUnwindSafe(worker.activate()).catch_unwind().await {
        Ok(Ok(left)) => Some(left),
        Ok(Err(error)) => {
            let causes = with_causes(&error);
            if was_failing {
                tracing::debug!(worker = worker.name(), %causes, "a worker failed again");
            } else {
                tracing::error!(
                    worker = worker.name(),
                    %causes,
                    "a worker failed: its work waits, and is retried with backoff; if this goes on, check the store that \
                     `causes` names"
                );
            }
            None
        }
        Err(_) => {
            tracing::error!(
                worker = worker.name(),
                "a worker panicked: its work waits, and is retried with backoff; report the panic"
            );
            None
        }
    }
}

#[cfg(test)]
mod tests;
