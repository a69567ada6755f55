//! Tests of delivery: no wrong clock keeps a batch from the sink.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;
use seatkeeper_core::{Region, TenantId, Usage};
use seatkeeper_ledger::Settings;
use seatkeeper_registry::ManualClock;
use seatkeeper_registry::memory::MemoryRegistry;
use uuid::Uuid;

use super::*;
use crate::usage::emission::tests::{START, admission, admission_of};
use crate::usage::sink::Reply;

const MINUTE: Span = Span::from_secs(60);
const HOUR: Span = Span::from_secs(3_600);
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

/// A sink that counts each id of a batch once, and no id of a record. It loses its first answer, and then takes no
/// batch of several records for a while.
#[derive(Clone, Default)]
struct ByBatch(Arc<Mutex<Received>>);

#[derive(Default)]
struct Received {
    usage_by_batch: HashMap<Uuid, Usage>,
    attempts: u32,
    takes_all: bool,
}

#[async_trait]
impl Sink for ByBatch {
    async fn send(&self, batch: &DueBatch) -> Reply {
        let mut received = self.0.lock();
        received.attempts += 1;
        let is_first = received.attempts == 1;
        if !is_first && !received.takes_all && batch.records.len() > 1 {
            return Reply::Answered { status: 413, retry_after: None, said: "too large".into() };
        }
        let usage = batch.records.iter().map(|record| record.usage).sum();
        received.usage_by_batch.entry(batch.id).or_insert(usage);
        if is_first {
            return Reply::Unanswered { why: "the connection was lost".into(), may_be_stored: true };
        }
        Reply::Answered { status: 200, retry_after: None, said: String::new() }
    }
}

#[tokio::test]
async fn a_sink_that_knows_batches_alone_counts_usage_once_also_after_a_lost_answer_and_a_refusal() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(Settings::new(dir.path())).await.unwrap();
    let tenant = tenant_of_two_sessions(&ledger).await;
    let end = START + HOUR;
    for name in [JobName::UsageEmission, JobName::UsageDelivery] {
        ledger.ensure_job(name, MINUTE, end).await.unwrap();
    }
    let emission = ledger.take_job(JobName::UsageEmission, "a", end).await.unwrap().unwrap();
    let emitted = ledger.emit_usage(end, 10, &emission.fence).await.unwrap().unwrap();

    let sink = ByBatch::default();
    let server_at = |time| Delivery {
        registry: Arc::new(MemoryRegistry::new(1, Region::default(), 1_000, ManualClock::at(time))),
        ledger: ledger.clone(),
        sink: Box::new(sink.clone()),
        duplicate_statuses: Vec::new(),
        metrics: UsageMetrics::default(),
    };
    let run = ledger.take_job(JobName::UsageDelivery, "a", end).await.unwrap().unwrap();
    for minute in 0..4 {
        server_at(end + Span::from_secs(60 * minute)).run(&run.fence).await.unwrap();
    }
    sink.0.lock().takes_all = true;
    let later = end + HOUR;
    assert_eq!(ledger.send_dead_usage_again(&tenant, later).await.unwrap(), 1, "an operator's word");
    server_at(later).run(&run.fence).await.unwrap();

    let books = ledger.reconcile_usage(&tenant, emitted.window).await.unwrap().unwrap();
    assert_eq!(books.first_difference, None, "all is delivered");
    let counted: Usage = sink.0.lock().usage_by_batch.values().copied().sum();
    assert_eq!(counted, books.held);
}

/// Puts two sessions of one tenant on record, and returns the tenant.
async fn tenant_of_two_sessions(ledger: &Ledger) -> TenantId {
    let events = [1, 2].map(|user| admission_of(user, START));
    ledger.apply(&events).await.unwrap();
    events[0].pool.tenant.clone()
}

/// A sink that is out of service, or in service.
struct Switched(Arc<AtomicBool>, Arc<AtomicU64>);

#[async_trait]
impl Sink for Switched {
    async fn send(&self, _: &DueBatch) -> Reply {
        self.1.fetch_add(1, Relaxed);
        let status = if self.0.load(Relaxed) { 200 } else { 503 };
        Reply::Answered { status, retry_after: None, said: String::new() }
    }
}

#[tokio::test]
async fn a_sink_that_is_down_is_asked_few_times_in_a_run_and_gets_everything_once_it_is_back() {
    const BATCHES: u64 = 200;
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(Settings::new(dir.path())).await.unwrap();
    ledger.apply(&[admission(START)]).await.unwrap();
    let end = START + Span::from_secs(60 * BATCHES);
    for name in [JobName::UsageEmission, JobName::UsageDelivery] {
        ledger.ensure_job(name, MINUTE, end).await.unwrap();
    }
    let emission = ledger.take_job(JobName::UsageEmission, "a", end).await.unwrap().unwrap();
    for minute in 1..=BATCHES {
        let until = START + Span::from_secs(60 * minute);
        ledger.emit_usage(until, 10, &emission.fence).await.unwrap().unwrap();
    }

    let (is_up, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let server_at = |time| Delivery {
        registry: Arc::new(MemoryRegistry::new(1, Region::default(), 1_000, ManualClock::at(time))),
        ledger: ledger.clone(),
        sink: Box::new(Switched(Arc::clone(&is_up), Arc::clone(&sent))),
        duplicate_statuses: Vec::new(),
        metrics: UsageMetrics::default(),
    };
    let run = ledger.take_job(JobName::UsageDelivery, "a", end).await.unwrap().unwrap();
    server_at(end).run(&run.fence).await.unwrap();
    let tried = sent.swap(0, Relaxed);
    let most = RETRIED_IN_A_ROW_MAX + BATCHES_AT_ONCE_MAX as u64;
    assert!((RETRIED_IN_A_ROW_MAX..=most).contains(&tried), "{tried} attempts");
    is_up.store(true, Relaxed);
    server_at(end).run(&run.fence).await.unwrap();
    assert_eq!(sent.swap(0, Relaxed), BATCHES - tried, "the batches that were not tried are due first");
    server_at(end + MINUTE).run(&run.fence).await.unwrap();
    assert_eq!(sent.load(Relaxed), tried);
}
