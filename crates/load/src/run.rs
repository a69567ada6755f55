//! The three phases of a run: prepare, measure, clean up. Only the second is measured.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::report::Report;
use crate::worker::{Caller, Cycle, Denials, Evictions, Fixed, Heartbeats, Shared, Worker};
use crate::{Error, Plan, Scenario};

/// The interval between two progress reports.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// The progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The time of measurement so far.
    pub elapsed: Duration,
    /// The number of requests so far.
    pub requests: u64,
    /// The number of requests not answered as expected.
    pub errors: u64,
    /// The number of broken promises so far.
    pub violations: u64,
}

/// Runs `plan` on the current runtime, and reports progress twice a second during the measurement.
///
/// A single-threaded runtime takes the least of the machine. Seats required by the scenario are taken before
/// the measurement and released after it.
pub async fn run(plan: Plan, progress: impl FnMut(Progress)) -> Result<Report, Error> {
    plan.check()?;
    let scenario = plan.scenario.clone();
    let shared = Arc::new(Shared::new(plan));
    match scenario {
        Scenario::Heartbeats { sessions_per_connection } => {
            measure(&shared, progress, |caller| Ok(Heartbeats::new(caller, sessions_per_connection))).await
        }
        Scenario::Denied => measure(&shared, progress, Denials::new).await,
        Scenario::Cycle { heartbeats } => {
            measure(&shared, progress, |caller| Cycle::new(caller, heartbeats)).await
        }
        Scenario::Evictions { subscribers } => {
            measure(&shared, progress, |caller| Ok(Evictions::new(caller, &subscribers))).await
        }
        Scenario::Fixed(request) => measure(&shared, progress, |caller| Fixed::new(caller, &request)).await,
    }
}

async fn measure<W: Worker>(
    shared: &Arc<Shared>,
    mut progress: impl FnMut(Progress),
    make: impl Fn(Caller) -> Result<W, Error>,
) -> Result<Report, Error> {
    let workers = (0..shared.plan().concurrency)
        .map(|number| make(Caller::new(shared.clone(), number)))
        .collect::<Result<Vec<W>, Error>>()?;
    let workers = each(workers, prepared, || ()).await?;

    shared.start_measuring();
    let workers = each(workers, driven, || progress(shared.progress())).await?;
    let report = shared.report();

    each(workers, finished, || ()).await?;
    Ok(report)
}

async fn prepared<W: Worker>(mut worker: W) -> Result<W, Error> {
    worker.prepare().await?;
    Ok(worker)
}

async fn driven<W: Worker>(mut worker: W) -> Result<W, Error> {
    worker.caller().measured = true;
    while worker.caller().takes_turn() {
        worker.turn().await?;
    }
    worker.caller().measured = false;
    Ok(worker)
}

async fn finished<W: Worker>(worker: W) -> Result<(), Error> {
    worker.finish().await
}

/// Runs `step` for every worker concurrently, and calls `tick` at intervals meanwhile. The first error aborts
/// all workers.
async fn each<W: Worker, T: Send + 'static, F: Future<Output = Result<T, Error>> + Send + 'static>(
    workers: Vec<W>,
    step: impl Fn(W) -> F,
    mut tick: impl FnMut(),
) -> Result<Vec<T>, Error> {
    let mut under_way: JoinSet<_> = workers.into_iter().map(step).collect();
    let mut done = Vec::with_capacity(under_way.len());
    let mut ticks = tokio::time::interval(PROGRESS_INTERVAL);
    loop {
        tokio::select! {
            joined = under_way.join_next() => match joined {
                Some(worker) => done.push(worker??),
                None => return Ok(done),
            },
            _ = ticks.tick() => tick(),
        }
    }
}
