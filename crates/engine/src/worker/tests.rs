//! The driver retries failed batches, honours `Progress`, and finishes the work at shutdown.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Notify;

use super::{Progress, Worker, WorkerSet};
use crate::error::Error;

/// A worker that counts its batches and answers each by the script.
struct Scripted {
    batches: Arc<AtomicUsize>,
    done: Arc<Notify>,
    pause_max: Duration,
    script: fn(usize) -> Result<Progress, Error>,
}

#[async_trait]
impl Worker for Scripted {
    type Error = Error;

    fn name(&self) -> &'static str {
        "scripted"
    }

    fn rest(&self) -> Duration {
        LONG
    }

    fn retry_pause_max(&self) -> Duration {
        self.pause_max
    }

    fn must_finish(&self) -> bool {
        true
    }

    async fn activate(&self) -> Result<Progress, Error> {
        let left = (self.script)(self.batches.fetch_add(1, Ordering::SeqCst));
        if matches!(left, Ok(Progress::Idle)) {
            self.done.notify_one();
        }
        left
    }
}

/// A pause that a test does not outlive.
const LONG: Duration = Duration::from_secs(3_600);

fn crew_of(script: fn(usize) -> Result<Progress, Error>) -> (WorkerSet, Arc<AtomicUsize>, Arc<Notify>) {
    crew_with_pause(LONG, script)
}

fn crew_with_pause(
    pause_max: Duration,
    script: fn(usize) -> Result<Progress, Error>,
) -> (WorkerSet, Arc<AtomicUsize>, Arc<Notify>) {
    let (batches, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let workers = WorkerSet::new();
    workers.start(Scripted { batches: Arc::clone(&batches), done: Arc::clone(&done), pause_max, script });
    (workers, batches, done)
}

const DEADLINE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_worker_goes_on_for_as_long_as_something_is_left() {
    let (workers, batches, done) =
        crew_of(|batch| Ok(if batch < 4 { Progress::More } else { Progress::Idle }));
    tokio::time::timeout(DEADLINE, done.notified()).await.expect("all batches");
    assert_eq!(batches.load(Ordering::SeqCst), 5);
    workers.stop().await;
}

#[tokio::test]
async fn a_failure_and_a_panic_are_tried_again() {
    let (workers, batches, done) = crew_of(|batch| match batch {
        0 => Err(Error::NotDurable),
        1 => panic!("a batch that panics"),
        _ => Ok(Progress::Idle),
    });
    tokio::time::timeout(DEADLINE, done.notified()).await.expect("a batch that succeeds");
    assert_eq!(batches.load(Ordering::SeqCst), 3);
    workers.stop().await;
}

/// By the backoff alone, 13 failures would take more than the deadline.
#[tokio::test]
async fn a_worker_that_fails_pauses_no_longer_than_it_says() {
    let (workers, _, done) = crew_with_pause(Duration::from_millis(1), |batch| {
        if batch < 13 { Err(Error::NotDurable) } else { Ok(Progress::Idle) }
    });
    tokio::time::timeout(DEADLINE, done.notified()).await.expect("a batch that succeeds");
    workers.stop().await;
}

#[tokio::test]
async fn a_stop_lets_a_worker_do_what_is_left() {
    let (workers, batches, done) =
        crew_of(|batch| Ok(if batch % 4 == 0 { Progress::Idle } else { Progress::More }));
    tokio::time::timeout(DEADLINE, done.notified()).await.expect("a first batch");
    workers.stop().await;
    assert_eq!(batches.load(Ordering::SeqCst), 5, "one batch before the stop, four to finish");
}

#[tokio::test]
async fn what_is_left_for_later_is_done_when_the_pause_is_over() {
    let pause = Duration::from_millis(1);
    assert_eq!(batches_when_done(pause, false).await, 2);
}

#[tokio::test]
async fn what_is_left_for_later_is_done_at_once_when_somebody_waits_for_it() {
    assert_eq!(batches_when_done(DEADLINE * 2, true).await, 2);
}

/// Returns the number of batches until no work is left. The first batch returns `Progress::Defer(pause)`.
async fn batches_when_done(pause: Duration, hurried: bool) -> usize {
    struct Patient(Scripted, Duration, bool);

    #[async_trait]
    impl Worker for Patient {
        type Error = Error;

        fn name(&self) -> &'static str {
            self.0.name()
        }

        fn rest(&self) -> Duration {
            self.0.rest()
        }

        async fn activate(&self) -> Result<Progress, Error> {
            let left = self.0.activate().await?;
            Ok(if left == Progress::More { Progress::Defer(self.1) } else { left })
        }

        async fn hurried(&self) {
            if !self.2 {
                std::future::pending().await
            }
        }
    }

    let (batches, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let script: fn(usize) -> _ = |batch| Ok(if batch == 0 { Progress::More } else { Progress::Idle });
    let scripted =
        Scripted { batches: Arc::clone(&batches), done: Arc::clone(&done), pause_max: LONG, script };
    let workers = WorkerSet::new();
    workers.start(Patient(scripted, pause, hurried));
    tokio::time::timeout(DEADLINE, done.notified()).await.expect("all batches");
    let batches = batches.load(Ordering::SeqCst);
    workers.stop().await;
    batches
}
