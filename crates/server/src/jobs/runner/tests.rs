//! I8 with real runners: two workers share a ledger, and a worker dies or freezes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use seatkeeper_core::{Region, RegistryTime, Span};
use seatkeeper_ledger::jobs::{Fence, JobName, JobOutcome, JobRecord, JobRunRecord, LOCK_TIMEOUT, RunsKept};
use seatkeeper_ledger::{Ledger, Settings};
use seatkeeper_registry::ManualClock;
use seatkeeper_registry::memory::MemoryRegistry;
use tempfile::TempDir;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

use super::{Pace, Runner};
use crate::error::Error;
use crate::jobs::board::Lifetimes;
use crate::jobs::{Board, Job, JobClock};
use crate::metrics::JobMetrics;
use seatkeeper_engine::{Worker, WorkerSet};

const START: RegistryTime = RegistryTime::from_millis(1_800_000_000_000);
const INTERVAL: Span = Span::from_secs(600);
const JOB: JobName = JobName::Housekeeping;

/// A purge by `NONE_KEPT` would delete every ended run.
const NONE_KEPT: RunsKept = RunsKept { since: RegistryTime::MAX, min: 0, max: 0 };

/// Longer than any step of these tests.
const DEADLINE: Duration = Duration::from_secs(30);
const NEVER: Duration = Duration::from_secs(3_600);

/// No caching: a runner reads the schedule and the clock at every check.
const AT_ONCE: Lifetimes = Lifetimes { schedule: Duration::ZERO, clock: Duration::ZERO };

/// A pace without checks or heartbeats during a test.
const STILL: Pace = Pace { look: NEVER, heartbeat: NEVER, grace: NEVER };
/// A pace with heartbeats in quick succession.
const QUICK: Pace = Pace { look: NEVER, heartbeat: Duration::from_millis(5), grace: NEVER };

/// A ledger with the job `JOB`, and a registry on a manual clock.
struct Scene {
    _dir: TempDir,
    ledger: Ledger,
    clock: Arc<ManualClock>,
    registry: Arc<MemoryRegistry<Arc<ManualClock>>>,
}

/// The behaviour of a scripted job.
#[derive(Clone, Copy)]
enum Script {
    Succeed,
    Fail,
    Panic,
    /// Waits until the gate opens, then deletes under the fence.
    WaitAndWrite,
}

/// Counters of a scripted job's runs.
#[derive(Default)]
struct Observed {
    begun: AtomicU32,
    dropped: AtomicU32,
    refused: AtomicU32,
    stirred: Notify,
}

struct Scripted {
    script: Script,
    needs_steady_clock: bool,
    ledger: Ledger,
    gate: Arc<Semaphore>,
    seen: Arc<Observed>,
}

/// Counts work that was dropped before its end.
struct Guard<'a>(&'a Observed);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::SeqCst);
        self.0.stirred.notify_one();
    }
}

#[async_trait]
impl Job for Scripted {
    fn name(&self) -> JobName {
        JOB
    }

    fn interval(&self) -> Span {
        INTERVAL
    }

    fn needs_steady_clock(&self) -> bool {
        self.needs_steady_clock
    }

    async fn run(&self, fence: &Fence) -> Result<(), Error> {
        self.seen.begun.fetch_add(1, Ordering::SeqCst);
        self.seen.stirred.notify_one();
        match self.script {
            Script::Succeed => Ok(()),
            Script::Fail => Err(Error::TimedOut),
            Script::Panic => panic!("work that panics"),
            Script::WaitAndWrite => {
                let guard = Guard(&self.seen);
                let _open = self.gate.acquire().await.expect("the gate is there");
                std::mem::forget(guard);
                let written = self.ledger.purge_job_runs(fence, &NONE_KEPT, 10).await;
                self.seen.refused.fetch_add(u32::from(written.is_err()), Ordering::SeqCst);
                written.map(|_| ()).map_err(Error::Ledger)
            }
        }
    }
}

impl Scene {
    async fn set() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let ledger = Ledger::open(Settings::new(dir.path())).await.expect("a ledger");
        ledger.ensure_job(JOB, INTERVAL, START).await.expect("a job");
        let clock = Arc::new(ManualClock::at(START));
        let registry = Arc::new(MemoryRegistry::new(1, Region::default(), 1_000, Arc::clone(&clock)));
        Self { _dir: dir, ledger, clock, registry }
    }

    fn runner(&self, worker: &str, script: Script, pace: Pace) -> Runner<Scripted> {
        let (gate, seen) = (Arc::new(Semaphore::new(0)), Arc::default());
        let clock = Arc::new(JobClock::of_process(Arc::clone(&self.registry) as _));
        Runner {
            job: Scripted { script, needs_steady_clock: false, ledger: self.ledger.clone(), gate, seen },
            board: Arc::new(Board::new(Arc::clone(&clock), self.ledger.clone(), AT_ONCE)),
            clock,
            ledger: self.ledger.clone(),
            worker: worker.into(),
            bell: Arc::default(),
            stop: CancellationToken::new(),
            pace,
            metrics: JobMetrics::default(),
        }
    }

    /// Returns all records of jobs and of the runs of `JOB`.
    async fn records(&self) -> (Vec<JobRecord>, Vec<JobRunRecord>) {
        let jobs = self.ledger.list_jobs().await.expect("jobs");
        (jobs, self.ledger.job_runs(JOB, None, 1_000).await.expect("runs").items)
    }

    /// Returns worker and outcome of each run, the oldest first.
    async fn history(&self) -> Vec<(String, JobOutcome)> {
        let (_, runs) = self.records().await;
        runs.into_iter().rev().map(|run| (run.worker, run.outcome)).collect()
    }
}

fn told(history: &[(String, JobOutcome)]) -> Vec<(&str, JobOutcome)> {
    history.iter().map(|(worker, outcome)| (worker.as_str(), *outcome)).collect()
}

impl Observed {
    fn begun(&self) -> u32 {
        self.begun.load(Ordering::SeqCst)
    }

    async fn until(&self, what: impl Fn(&Self) -> bool) {
        let seen = async {
            while !what(self) {
                self.stirred.notified().await;
            }
        };
        tokio::time::timeout(DEADLINE, seen).await.expect("what the test waits for");
    }
}

async fn look(runner: &Runner<Scripted>) {
    let looked = tokio::time::timeout(DEADLINE, runner.activate()).await;
    looked.expect("a look that ends").expect("a look that succeeds");
}

#[tokio::test]
async fn when_a_worker_dies_in_the_middle_another_takes_over_after_the_lock_timeout_and_not_before() {
    let scene = Scene::set().await;
    let (dying, heir) =
        (scene.runner("a", Script::WaitAndWrite, QUICK), scene.runner("b", Script::Succeed, STILL));
    let (seen, heir_seen) = (Arc::clone(&dying.job.seen), Arc::clone(&heir.job.seen));
    let life = tokio::spawn(async move { dying.activate().await.map(|_| ()) });
    seen.until(|seen| seen.begun() == 1).await;
    life.abort();
    assert!(life.await.expect_err("it was killed").is_cancelled());

    // The dead worker's last heartbeat may have come just before its death, but the clock had not moved.
    for early in [START, START + LOCK_TIMEOUT - Span::from_millis(1)] {
        scene.clock.set(early);
        look(&heir).await;
        assert_eq!(heir_seen.begun(), 0, "{early:?}");
    }
    scene.clock.set(START + LOCK_TIMEOUT);
    look(&heir).await;
    assert_eq!(heir_seen.begun(), 1);
    let history = scene.history().await;
    assert_eq!(told(&history), [("a", JobOutcome::Lost), ("b", JobOutcome::Succeeded)]);
}

#[tokio::test]
async fn by_a_servers_clock_that_was_set_no_job_is_taken_and_by_a_new_one_none_that_deletes() {
    let scene = Scene::set().await;
    let clock = Arc::new(JobClock::of_server(Arc::clone(&scene.registry) as _));
    let mut deleting = Runner { clock: Arc::clone(&clock), ..scene.runner("a", Script::Succeed, STILL) };
    deleting.job.needs_steady_clock = true;
    let other = Runner { clock, ..scene.runner("b", Script::Succeed, STILL) };
    look(&deleting).await;
    assert_eq!(deleting.job.seen.begun(), 0, "the clock may be wrong for all that is known");
    look(&other).await;
    assert_eq!(other.job.seen.begun(), 1);

    scene.clock.set(START + Span::from_secs(10 * 365 * 86_400));
    for runner in [&deleting, &other] {
        look(runner).await;
    }
    assert_eq!((deleting.job.seen.begun(), other.job.seen.begun()), (0, 1));
}

#[tokio::test]
async fn a_worker_that_wakes_after_another_took_over_changes_nothing() {
    let scene = Scene::set().await;
    let (frozen, next) =
        (scene.runner("a", Script::WaitAndWrite, STILL), scene.runner("b", Script::Succeed, STILL));
    let (seen, gate) = (Arc::clone(&frozen.job.seen), Arc::clone(&frozen.job.gate));
    let frozen = tokio::spawn(async move { frozen.activate().await.map(|_| ()) });
    seen.until(|seen| seen.begun() == 1).await;

    scene.clock.advance(LOCK_TIMEOUT);
    look(&next).await;
    let before = scene.records().await;
    assert_eq!(before.1.len(), 2);

    // The frozen worker wakes, writes, and tries to complete its run.
    gate.add_permits(1);
    tokio::time::timeout(DEADLINE, frozen).await.expect("an end").expect("no panic").expect("no error");
    assert_eq!(seen.refused.load(Ordering::SeqCst), 1, "its write was refused");
    assert_eq!(scene.records().await, before);
}

#[tokio::test]
async fn a_heartbeat_that_finds_the_lock_lost_drops_the_work() {
    let scene = Scene::set().await;
    let slow =
        scene.runner("a", Script::WaitAndWrite, Pace { heartbeat: Duration::from_millis(200), ..STILL });
    let seen = Arc::clone(&slow.job.seen);
    let slow = tokio::spawn(async move { slow.activate().await.map(|_| ()) });
    seen.until(|seen| seen.begun() == 1).await;
    // Worker "b" takes the job by a clock that is far ahead.
    let taken = scene.ledger.take_job(JOB, "b", START + LOCK_TIMEOUT + LOCK_TIMEOUT).await.expect("a look");
    let taken = taken.expect("a stale lock").fence;
    scene.ledger.complete_job(&taken, START + LOCK_TIMEOUT + LOCK_TIMEOUT).await.expect("a run");
    let before = scene.records().await;

    tokio::time::timeout(DEADLINE, slow).await.expect("an end").expect("no panic").expect("no error");
    assert_eq!(seen.dropped.load(Ordering::SeqCst), 1);
    assert_eq!(scene.records().await, before);
}

#[tokio::test]
async fn a_lock_is_kept_for_as_long_as_the_work_goes_on() {
    let scene = Scene::set().await;
    let (long, other) =
        (scene.runner("a", Script::WaitAndWrite, QUICK), scene.runner("b", Script::Succeed, STILL));
    let (seen, gate) = (Arc::clone(&long.job.seen), Arc::clone(&long.job.gate));
    let long = tokio::spawn(async move { long.activate().await.map(|_| ()) });
    seen.until(|seen| seen.begun() == 1).await;
    for minute in 1..=10 {
        let now = START + Span::from_secs(60 * minute);
        scene.clock.set(now);
        let heard = async {
            while scene.records().await.0[0].lock.as_ref().is_none_or(|lock| lock.at < now) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(DEADLINE, heard).await.expect("a heartbeat");
        look(&other).await;
        assert_eq!(other.job.seen.begun(), 0, "minute {minute}");
    }
    gate.add_permits(1);
    tokio::time::timeout(DEADLINE, long).await.expect("an end").expect("no panic").expect("no error");
    assert_eq!(told(&scene.history().await), [("a", JobOutcome::Succeeded)]);
}

#[tokio::test]
async fn three_heartbeats_that_fail_in_a_row_drop_the_work() {
    let scene = Scene::set().await;
    let cut_off = scene.runner("a", Script::WaitAndWrite, QUICK);
    let seen = Arc::clone(&cut_off.job.seen);
    let cut_off = tokio::spawn(async move { cut_off.activate().await.map(|_| ()) });
    seen.until(|seen| seen.begun() == 1).await;
    scene.ledger.close().await;
    seen.until(|seen| seen.dropped.load(Ordering::SeqCst) == 1).await;
    let ended = tokio::time::timeout(DEADLINE, cut_off).await.expect("an end").expect("no panic");
    assert!(matches!(ended, Err(Error::Ledger(_))), "the failure could not be recorded: {ended:?}");
}

#[tokio::test]
async fn a_failure_and_a_panic_are_on_record_and_tried_again_after_a_pause() {
    let scene = Scene::set().await;
    look(&scene.runner("a", Script::Fail, STILL)).await;
    let after = |seconds| START + Span::from_secs(seconds);
    assert_eq!(scene.records().await.0[0].retry_at, Some(after(5)));
    scene.clock.set(after(5));
    look(&scene.runner("b", Script::Panic, STILL)).await;
    assert_eq!(scene.records().await.0[0].retry_at, Some(after(15)));

    let good = scene.runner("c", Script::Succeed, STILL);
    look(&good).await;
    assert_eq!(good.job.seen.begun(), 0, "too early");
    scene.clock.set(after(15));
    look(&good).await;
    let (jobs, runs) = scene.records().await;
    let errors: Vec<_> = runs.iter().rev().map(|run| run.error.as_deref()).collect();
    assert_eq!(errors, [Some("the request took too long"), Some("the work panicked"), None]);
    assert_eq!((jobs[0].failures, jobs[0].next_run_at), (0, START + INTERVAL));
}

#[tokio::test]
async fn at_a_stop_nothing_is_taken_and_work_that_is_not_done_in_time_is_another_workers_at_once() {
    let scene = Scene::set().await;
    let stopped = scene.runner("a", Script::WaitAndWrite, Pace { grace: Duration::from_millis(50), ..STILL });
    let (seen, workers) = (Arc::clone(&stopped.job.seen), WorkerSet::new());
    workers.start(Runner { stop: workers.stopping(), ..stopped });
    seen.until(|seen| seen.begun() == 1).await;
    tokio::time::timeout(DEADLINE, workers.stop()).await.expect("a stop");
    assert_eq!((seen.begun(), seen.dropped.load(Ordering::SeqCst)), (1, 1));

    let late = scene.runner("a", Script::Succeed, STILL);
    late.stop.cancel();
    look(&late).await;
    assert_eq!(late.job.seen.begun(), 0, "it was to stop");
    look(&scene.runner("b", Script::Succeed, STILL)).await;
    let history = scene.history().await;
    assert_eq!(told(&history), [("a", JobOutcome::Failed), ("b", JobOutcome::Succeeded)]);
    assert_eq!(scene.records().await.0[0].failures, 0);
}

#[tokio::test]
async fn work_under_way_at_a_stop_may_end_well() {
    let scene = Scene::set().await;
    let runner = scene.runner("a", Script::WaitAndWrite, STILL);
    let (seen, gate, workers) =
        (Arc::clone(&runner.job.seen), Arc::clone(&runner.job.gate), WorkerSet::new());
    workers.start(Runner { stop: workers.stopping(), ..runner });
    seen.until(|seen| seen.begun() == 1).await;
    let (stopping, ()) = tokio::join!(tokio::time::timeout(DEADLINE, workers.stop()), async {
        workers.stopping().cancelled().await;
        gate.add_permits(1);
    });
    stopping.expect("a stop");
    assert_eq!(told(&scene.history().await), [("a", JobOutcome::Succeeded)]);
}

#[tokio::test]
async fn a_job_that_is_asked_for_does_not_wait_for_the_next_look() {
    let scene = Scene::set().await;
    let runner = scene.runner("a", Script::Succeed, STILL);
    let (seen, bell, workers) = (Arc::clone(&runner.job.seen), Arc::clone(&runner.bell), WorkerSet::new());
    workers.start(runner);
    seen.until(|seen| seen.begun() == 1).await;
    let settled = async {
        while scene.records().await.0[0].lock.is_some() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, settled).await.expect("an end of the run");
    scene.ledger.run_job_now(JOB, START).await.expect("a job");
    bell.notify_one();
    seen.until(|seen| seen.begun() == 2).await;
    workers.stop().await;
    assert_eq!(scene.records().await.0[0].next_run_at, START + INTERVAL);
}
