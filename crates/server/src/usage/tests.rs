//! Tests of the start of metering: an emission job never exists without its delivery job.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;

use async_trait::async_trait;
use seatkeeper_core::Region;
use seatkeeper_ledger::Settings;
use seatkeeper_ledger::jobs::JobName;
use seatkeeper_ledger::usage::DueBatch;
use seatkeeper_registry::memory::MemoryRegistry;
use seatkeeper_registry::{ManualClock, Registry};

use super::sink::Reply;
use super::*;
use crate::jobs::{JobClock, TrustedClock};
use crate::metrics::JobMetrics;
use seatkeeper_engine::Commits;

const NOW: RegistryTime = RegistryTime::from_millis(1_800_000_000_000);

struct NoSink;

#[async_trait]
impl Sink for NoSink {
    async fn send(&self, _: &DueBatch) -> Reply {
        Reply::Unanswered { why: "nobody is there".into(), may_be_stored: false }
    }
}

/// Polls `work` up to `steps` times, and drops it.
async fn steps_of(mut steps: u32, work: impl Future) -> Option<()> {
    let mut work = pin!(work);
    std::future::poll_fn(|context| {
        if steps == 0 {
            return Poll::Ready(None);
        }
        steps -= 1;
        work.as_mut().poll(context).map(|_| Some(()))
    })
    .await
}

#[tokio::test]
async fn at_no_moment_is_there_an_emission_without_a_delivery_that_it_can_ask_for() {
    let mut emissions = 0;
    for steps in 0..1_000 {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(Settings::new(dir.path())).await.unwrap();
        let registry: Arc<dyn Registry> =
            Arc::new(MemoryRegistry::new(1, Region::default(), 1_000, Arc::new(ManualClock::at(NOW))));
        let metering = Metering {
            sink: NoSink,
            settings: UsageSettings::default(),
            backend: Backend::lasting(Arc::clone(&registry), Commits::new(1_000)),
            ledger: ledger.clone(),
            metrics: UsageMetrics::default(),
        };
        let clock = Arc::new(JobClock::of_process(registry));
        let (jobs, workers) = (JobMetrics::default(), WorkerSet::new());
        let trusted = TrustedClock::start(Arc::clone(&clock), ledger.clone(), NOW).await.unwrap();
        let mut jobs = Roster::new(clock, Arc::new(trusted), ledger.clone(), jobs);
        let done = steps_of(steps, metering.start(&workers, &mut jobs, NOW)).await;
        let known: Vec<_> = ledger.list_jobs().await.unwrap().into_iter().map(|job| job.name).collect();
        let has = |name| known.contains(&name);
        assert!(
            !has(JobName::UsageEmission) || has(JobName::UsageDelivery),
            "after {steps} steps: {known:?}"
        );
        emissions += u32::from(has(JobName::UsageEmission));
        workers.stop().await;
        if done.is_some() {
            assert!(emissions > 0);
            return;
        }
    }
    panic!("it does not start");
}
