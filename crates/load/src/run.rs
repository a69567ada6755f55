//! One run: prepare, measure, give back.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::report::Report;
use crate::worker::{Cycle, Denials, Desk, Evictions, Fixed, Heartbeats, Shared, Worker};
use crate::{Error, Plan, Scenario};

/// How often progress is told.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// How a run stands.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// How long it has measured.
    pub elapsed: Duration,
    /// Requests so far.
    pub requests: u64,
    /// Those of them that were not answered as they may be.
    pub errors: u64,
    /// Promises that were seen broken so far.
    pub violations: u64,
}

/// Runs `plan` on the current runtime, and tells how it stands twice a second while it measures.
///
/// A runtime of one thread costs the machine the least. Seats that are needed are taken before the
/// measurement and given back after it.
pub async fn run(plan: Plan, progress: impl FnMut(Progress)) -> Result<Report, Error> {
    plan.check()?;
    let scenario = plan.scenario.clone();
    let shared = Arc::new(Shared::new(plan));
    match scenario {
        Scenario::Heartbeats { sessions_per_connection } => {
            measure(&shared, progress, |desk| Ok(Heartbeats::new(desk, sessions_per_connection))).await
        }
        Scenario::Denied => measure(&shared, progress, Denials::new).await,
        Scenario::Cycle { heartbeats } => {
            measure(&shared, progress, |desk| Cycle::new(desk, heartbeats)).await
        }
        Scenario::Evictions { subscribers } => {
            measure(&shared, progress, |desk| Ok(Evictions::new(desk, &subscribers))).await
        }
        Scenario::Fixed(request) => measure(&shared, progress, |desk| Fixed::new(desk, &request)).await,
    }
}

async fn measure<W: Worker>(
    shared: &Arc<Shared>,
    mut progress: impl FnMut(Progress),
    make: impl Fn(Desk) -> Result<W, Error>,
) -> Result<Report, Error> {
    let workers = (0..shared.plan().concurrency)
        .map(|number| make(Desk::new(shared.clone(), number)))
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
    worker.desk().measured = true;
    while worker.desk().takes_turn() {
        worker.turn().await?;
    }
    worker.desk().measured = false;
    Ok(worker)
}

async fn finished<W: Worker>(worker: W) -> Result<(), Error> {
    worker.finish().await
}

/// Does `step` with each worker, all at once, and `tick`s meanwhile. Ends all at the first error.
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
