//! Tests of delivery: no wrong clock keeps a batch from the sink.

use std::collections::VecDeque;

use parking_lot::Mutex;
use seatkeeper_core::Region;
use seatkeeper_ledger::Settings;
use seatkeeper_registry::ManualClock;
use seatkeeper_registry::memory::MemoryRegistry;

use super::*;
use crate::usage::emission::tests::{START, admission};
use crate::usage::sink::Reply;

const MINUTE: Span = Span::from_secs(60);
const DAY: Span = Span::from_secs(86_400);

/// A sink that answers with each status once, and counts the batches.
struct Scripted(Arc<Mutex<VecDeque<u16>>>);

#[async_trait]
impl Sink for Scripted {
    async fn send(&self, _: &DueBatch) -> Reply {
        let status = self.0.lock().pop_front().expect("a further attempt");
        Reply::Answered { status, retry_after: None, said: String::new() }
    }
}

#[tokio::test]
async fn a_batch_that_failed_under_a_wrong_clock_is_sent_again_once_the_clock_is_right() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(Settings::new(dir.path())).await.unwrap();
    ledger.apply(&[admission(START)]).await.unwrap();
    let now = START + MINUTE;
    for name in [JobName::UsageEmission, JobName::UsageDelivery] {
        ledger.ensure_job(name, MINUTE, now).await.unwrap();
    }
    let emission = ledger.take_job(JobName::UsageEmission, "a", now).await.unwrap().unwrap();
    ledger.emit_usage(now, 10, &emission.fence).await.unwrap().unwrap();

    let script = Arc::new(Mutex::new(VecDeque::from([503, 200])));
    // A registry's own clock never goes back, so a server with the right time starts.
    let server_at = |time| Delivery {
        registry: Arc::new(MemoryRegistry::new(1, Region::default(), 1_000, ManualClock::at(time))),
        ledger: ledger.clone(),
        sink: Box::new(Scripted(Arc::clone(&script))),
        duplicate_statuses: Vec::new(),
        metrics: UsageMetrics::default(),
    };
    let run = ledger.take_job(JobName::UsageDelivery, "a", now).await.unwrap().unwrap();
    server_at(now + DAY).run(&run.fence).await.unwrap();
    assert_eq!(script.lock().len(), 1, "the sink is busy");
    server_at(now).run(&run.fence).await.unwrap();
    assert_eq!(script.lock().len(), 0, "the sink has the batch");
}
