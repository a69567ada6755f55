//! A usage batch is due until the sink accepts or refuses the batch, and retention keeps undelivered usage.

use seatkeeper_core::{EndReason, Span, Window};
use seatkeeper_ledger::jobs::{Fence, JobName};
use seatkeeper_ledger::usage::{
    BatchPosition, BatchState, DELIVERY_BACKOFF_MAX, DueBatch, Settlement, UnbilledUsage, UsageBatch,
    UsageRecord,
};
use uuid::Uuid;

use super::meter::{MINUTE, Meter, TERM, tenant};
use crate::story::START;

#[tokio::test]
async fn a_batch_is_due_until_the_sink_has_it_and_then_forgotten_but_for_its_sums() {
    let mut meter = Meter::open().await;
    meter.hold(1, 2).await;
    meter.pass(MINUTE);
    meter.emit().await;
    let first = meter.ledger.due_usage(meter.now, None, 10).await.unwrap();
    assert_eq!(
        meter.ledger.due_usage(meter.now, None, 10).await.unwrap(),
        first,
        "reading takes nothing away"
    );
    let fence = meter.take(JobName::UsageDelivery).await;
    let (error, at) = ("busy".into(), meter.now + MINUTE);
    let retry = Settlement::Retry { status: Some(503), error, may_be_stored: true, at };
    meter.ledger.settle_usage(first[0].id, retry, &fence).await.unwrap();
    assert_eq!(meter.ledger.due_usage(meter.now, None, 10).await.unwrap(), []);
    let shown = meter.ledger.usage_batch(&tenant(1), first[0].id).await.unwrap().unwrap();
    assert_eq!((shown.state, shown.attempts, shown.last_status), (BatchState::Pending, 1, Some(503)));
    assert_eq!(shown.last_error.as_deref(), Some("busy"));

    meter.pass(MINUTE);
    let again = meter.ledger.due_usage(meter.now, None, 10).await.unwrap();
    assert_eq!((again[0].id, &again[0].records), (first[0].id, &first[0].records));
    meter.ledger.complete_job(&fence, meter.now).await.unwrap();
    meter.deliver().await;
    assert_eq!(meter.ledger.due_usage(meter.now + TERM, None, 10).await.unwrap(), []);
    let shown = meter.ledger.usage_batch(&tenant(1), first[0].id).await.unwrap().unwrap();
    assert_eq!((shown.state, shown.attempts, shown.delivered), (BatchState::Delivered, 2, Some(meter.now)));
    assert_eq!((shown.records, shown.usage), (1, first[0].records[0].usage));
}

#[tokio::test]
async fn a_dead_batch_waits_for_its_own_tenants_operator() {
    let mut meter = Meter::open().await;
    meter.hold(1, 1).await;
    meter.pass(MINUTE);
    meter.emit().await;
    let due = meter.ledger.due_usage(meter.now, None, 10).await.unwrap();
    let (id, fence) = (due[0].id, meter.take(JobName::UsageDelivery).await);
    assert!(!meter.ledger.send_usage_again(&tenant(1), id, meter.now).await.unwrap(), "it is not dead");
    let dead = Settlement::Dead { status: 422, error: "no such capacity".into(), at: meter.now };
    meter.ledger.settle_usage(id, dead, &fence).await.unwrap();
    let (error, at) = ("late".into(), meter.now);
    let retry = Settlement::Retry { status: None, error, may_be_stored: true, at };
    meter.ledger.settle_usage(id, retry, &fence).await.unwrap();
    meter.pass(TERM);
    assert_eq!(meter.ledger.due_usage(meter.now, None, 10).await.unwrap(), [], "an answer that comes late");

    assert!(!meter.ledger.send_usage_again(&tenant(2), id, meter.now).await.unwrap());
    assert_eq!(meter.ledger.usage_batch(&tenant(2), id).await.unwrap(), None);
    assert!(meter.ledger.send_usage_again(&tenant(1), id, meter.now).await.unwrap());
    let again = meter.ledger.due_usage(meter.now, None, 10).await.unwrap();
    assert_eq!((again[0].id, again[0].attempts, &again[0].records), (id, 0, &due[0].records));
}

#[tokio::test]
async fn due_batches_and_lists_come_a_page_at_a_time() {
    let mut meter = Meter::open().await;
    meter.batch_records = 2;
    for user in 0..5 {
        meter.hold(user, 3).await;
    }
    meter.hold_of(&tenant(2), 0, 3).await;
    for _ in 0..3 {
        meter.pass(MINUTE);
        meter.emit().await;
    }
    let all = meter.ledger.due_usage(meter.now, None, 100).await.unwrap();
    assert_eq!(all.len(), 12);
    assert!(all.is_sorted_by_key(|batch| (batch.due, batch.id)));
    let (mut paged, mut after) = (Vec::new(), None);
    loop {
        let page = meter.ledger.due_usage(meter.now, after, 5).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some((last.due, last.id));
        paged.extend(page);
    }
    assert_eq!(paged, all);

    let (mut listed, mut cursor) = (Vec::new(), None);
    loop {
        let page = meter.ledger.usage_batches(&tenant(1), None, cursor, 4).await.unwrap();
        listed.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(listed.len(), 9);
    assert!(listed.is_sorted_by(|a, b| (a.window, a.number) > (b.window, b.number)));
    let dead = meter.ledger.usage_batches(&tenant(1), Some(BatchState::Dead), None, 4).await.unwrap();
    assert_eq!(dead.items, []);
    let of_another =
        meter.ledger.usage_batches(&tenant(2), None, Some(position(&listed[0])), 4).await.unwrap();
    assert!(of_another.items.iter().all(|batch| listed.iter().all(|other| other.id != batch.id)));
}

fn position(batch: &UsageBatch) -> BatchPosition {
    BatchPosition { window_starts: batch.window.starts(), number: batch.number }
}

#[tokio::test]
async fn a_list_goes_on_where_the_last_batch_of_a_page_has_been_purged() {
    let mut meter = Meter::open().await;
    let run = meter.take(JobName::Retention).await;
    meter.hold(1, 1).await;
    for _ in 0..4 {
        meter.pass(MINUTE);
        meter.emit().await;
    }
    let all = meter.ledger.usage_batches(&tenant(1), None, None, 10).await.unwrap().items;
    assert_eq!(all.len(), 4);
    let page = meter.ledger.usage_batches(&tenant(1), None, None, 2).await.unwrap();
    assert_eq!(page.next, Some(position(&all[1])));
    // The sink has the batch at the cursor only, and the older batches stay.
    let fence = meter.take(JobName::UsageDelivery).await;
    let delivered = Settlement::Delivered { status: 200, at: meter.now };
    meter.ledger.settle_usage(all[1].id, delivered, &fence).await.unwrap();
    meter.ledger.purge_usage(&run, meter.now, 10).await.unwrap();
    assert_eq!(meter.ledger.usage_batch(&tenant(1), all[1].id).await.unwrap(), None);
    let rest = meter.ledger.usage_batches(&tenant(1), None, page.next, 10).await.unwrap();
    assert_eq!(rest.items, all[2..]);
}

/// Settles every pending batch as refused for good.
async fn refuse(meter: &mut Meter) -> Vec<DueBatch> {
    let fence = meter.take(JobName::UsageDelivery).await;
    let due = meter.ledger.due_usage(meter.now, None, 10_000).await.unwrap();
    for batch in &due {
        let dead = Settlement::Dead { status: 400, error: "no".into(), at: meter.now };
        meter.ledger.settle_usage(batch.id, dead, &fence).await.unwrap();
    }
    meter.ledger.complete_job(&fence, meter.now).await.unwrap();
    due
}

#[tokio::test]
async fn all_dead_batches_of_a_tenant_are_sent_again_by_one_word() {
    let mut meter = Meter::open().await;
    // More batches than one transaction makes pending.
    meter.batch_records = 1;
    meter.crowd(&tenant(1), 501).await;
    meter.hold_of(&tenant(2), 0, 1).await;
    for _ in 0..2 {
        meter.pass(MINUTE);
        meter.emit().await;
    }
    let mut refused = refuse(&mut meter).await;
    refused.retain(|batch| batch.tenant == tenant(1));
    assert_eq!(refused.len(), 1_002);
    meter.pass(MINUTE);
    assert_eq!(meter.ledger.send_dead_usage_again(&tenant(1), meter.now).await.unwrap(), 1_002);
    let mut again = meter.ledger.due_usage(meter.now, None, 10_000).await.unwrap();
    assert!(again.iter().all(|batch| (batch.attempts, batch.due) == (0, meter.now)));
    again.sort_by_key(|batch| batch.id);
    refused.sort_by_key(|batch| batch.id);
    let contents =
        |batches: Vec<DueBatch>| batches.into_iter().map(|batch| batch.records).collect::<Vec<_>>();
    assert_eq!(contents(again), contents(refused));
    assert_eq!(meter.ledger.send_dead_usage_again(&tenant(1), meter.now).await.unwrap(), 0);
    let other = meter.ledger.usage_batches(&tenant(2), Some(BatchState::Dead), None, 10).await.unwrap();
    assert_eq!(other.items.len(), 2, "batches of another tenant stay dead");
}

#[tokio::test]
async fn a_batch_that_is_too_large_goes_on_as_two_halves_until_the_sink_accepts_them() {
    let mut meter = Meter::open().await;
    meter.batch_records = 5;
    meter.crowd(&tenant(1), 7).await;
    meter.pass(MINUTE);
    meter.emit().await;
    let span = Window::new(START, meter.now).unwrap();
    let books = meter.ledger.reconcile_usage(&tenant(1), span).await.unwrap().unwrap();
    let whole = meter.ledger.due_usage(meter.now, None, 10).await.unwrap();
    let mut records: Vec<_> = whole.iter().flat_map(|batch| batch.records.clone()).collect();
    let fence = meter.take(JobName::UsageDelivery).await;
    let later = meter.now + Span::from_secs(1);
    loop {
        let due = meter.ledger.due_usage(later, None, 10).await.unwrap();
        let Some(large) = due.iter().find(|batch| batch.records.len() > 2) else { break };
        let split = Settlement::Split { at: later };
        meter.ledger.settle_usage(large.id, split.clone(), &fence).await.unwrap();
        // A late answer to the same attempt changes nothing.
        meter.ledger.settle_usage(large.id, split, &fence).await.unwrap();
        assert_eq!(meter.ledger.usage_batch(&tenant(1), large.id).await.unwrap(), None);
    }
    let parts = meter.ledger.due_usage(later, None, 10).await.unwrap();
    let mut lengths: Vec<_> = parts.iter().map(|batch| batch.records.len()).collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [1, 2, 2, 2]);
    let mut parted: Vec<_> = parts.iter().flat_map(|batch| batch.records.clone()).collect();
    for records in [&mut records, &mut parted] {
        records.sort_by_key(|record| record.id);
    }
    assert_eq!(parted, records, "every record once, under the same id");
    let now = meter.ledger.reconcile_usage(&tenant(1), span).await.unwrap().unwrap();
    assert_eq!(now, books, "the sums stay");
    // One record cannot be split.
    let single = parts.iter().find(|batch| batch.records.len() == 1).unwrap();
    meter.ledger.settle_usage(single.id, Settlement::Split { at: later }, &fence).await.unwrap();
    assert!(meter.ledger.usage_batch(&tenant(1), single.id).await.unwrap().is_some());
    let listed = meter.ledger.usage_batches(&tenant(1), None, None, 10).await.unwrap().items;
    assert_eq!(listed.iter().map(|batch| batch.records).sum::<u64>(), 7);
}

/// Settles every due batch as a sink that refuses batches with one of the records, until no batch is due. Returns the
/// number of attempts.
async fn settle_all(meter: &mut Meter, refuses: impl Fn(&UsageRecord) -> bool) -> usize {
    let fence = meter.take(JobName::UsageDelivery).await;
    let mut attempts = 0;
    loop {
        let due = meter.ledger.due_usage(meter.now, None, 4).await.unwrap();
        if due.is_empty() {
            break;
        }
        attempts += due.len();
        for batch in due {
            let (at, error) = (meter.now, "no such user".to_owned());
            let settlement = match (batch.records.iter().any(&refuses), batch.records.len()) {
                (false, _) => Settlement::Delivered { status: 200, at },
                (true, 1) => Settlement::Dead { status: 422, error, at },
                (true, _) => Settlement::Refused { status: 422, error, at },
            };
            meter.ledger.settle_usage(batch.id, settlement, &fence).await.unwrap();
        }
    }
    meter.ledger.complete_job(&fence, meter.now).await.unwrap();
    attempts
}

/// Returns the tenant's batches in a state.
async fn batches(meter: &Meter, state: BatchState) -> Vec<UsageBatch> {
    meter.ledger.usage_batches(&tenant(1), Some(state), None, 500).await.unwrap().items
}

#[tokio::test]
async fn only_the_records_that_the_sink_refuses_end_dead() {
    let mut meter = Meter::open().await;
    meter.crowd(&tenant(1), 100).await;
    meter.pass(MINUTE);
    meter.emit().await;
    let refused = [7, 42, 43].map(Uuid::from_u128);
    settle_all(&mut meter, |record| refused.contains(&record.user)).await;
    let dead = batches(&meter, BatchState::Dead).await;
    assert_eq!(dead.iter().map(|batch| batch.records).collect::<Vec<_>>(), [1, 1, 1]);
    assert!(dead.iter().all(|batch| batch.last_status == Some(422)), "{dead:?}");
    let delivered = batches(&meter, BatchState::Delivered).await;
    assert_eq!(delivered.iter().map(|batch| batch.records).sum::<u64>(), 97);
}

#[tokio::test]
async fn a_sink_that_refuses_everything_costs_few_attempts() {
    let mut meter = Meter::open().await;
    meter.crowd(&tenant(1), 1_000).await;
    meter.pass(MINUTE);
    meter.emit().await;
    assert_eq!(settle_all(&mut meter, |_| true).await, 21, "ten splits");
    let dead = batches(&meter, BatchState::Dead).await;
    assert_eq!((dead.len(), dead.iter().map(|batch| batch.records).sum::<u64>()), (11, 1_000));
    assert_eq!(meter.ledger.dead_usage_batches().await.unwrap(), 11);

    assert_eq!(meter.ledger.send_dead_usage_again(&tenant(1), meter.now).await.unwrap(), 11);
    settle_all(&mut meter, |record| record.user == Uuid::from_u128(7)).await;
    // The batch with the refused record may have come before the first delivery.
    meter.ledger.send_dead_usage_again(&tenant(1), meter.now).await.unwrap();
    settle_all(&mut meter, |record| record.user == Uuid::from_u128(7)).await;
    let dead = batches(&meter, BatchState::Dead).await;
    assert_eq!(dead.iter().map(|batch| batch.records).sum::<u64>(), 1, "once the sink takes the others");
}

#[tokio::test]
async fn retention_costs_a_refused_batch_no_split() {
    let mut meter = Meter::open().await;
    meter.batch_records = 2;
    meter.crowd(&tenant(1), 24).await;
    meter.pass(MINUTE);
    meter.emit().await;
    let fence = meter.take(JobName::UsageDelivery).await;
    let due = meter.ledger.due_usage(meter.now, None, 100).await.unwrap();
    for (number, batch) in due.iter().enumerate() {
        let (at, error) = (meter.now, "no such user".to_owned());
        let settlement = match number {
            0 => Settlement::Dead { status: 410, error, at },
            _ => Settlement::Delivered { status: 200, at },
        };
        meter.ledger.settle_usage(batch.id, settlement, &fence).await.unwrap();
    }
    meter.ledger.complete_job(&fence, meter.now).await.unwrap();

    meter.pass(MINUTE);
    let run = meter.take(JobName::Retention).await;
    assert!(!meter.ledger.purge_usage(&run, meter.now, 100).await.unwrap());
    assert_eq!(
        batches(&meter, BatchState::Delivered).await.len(),
        11,
        "the tenant has a dead batch beside them"
    );
    assert_eq!(meter.ledger.send_dead_usage_again(&tenant(1), meter.now).await.unwrap(), 1);
    settle_all(&mut meter, |record| record.user == due[0].records[0].user).await;
    let dead = batches(&meter, BatchState::Dead).await;
    assert_eq!(
        dead.iter().map(|batch| batch.records).collect::<Vec<_>>(),
        [1],
        "the other record is delivered"
    );
}

#[tokio::test]
async fn a_batch_dated_by_a_wrong_clock_is_due_once_the_clock_is_right() {
    let mut meter = Meter::open().await;
    meter.batch_records = 1;
    // More batches than one transaction recalls.
    meter.crowd(&tenant(1), 502).await;
    meter.pass(MINUTE);
    meter.emit().await;
    let fence = meter.take(JobName::UsageDelivery).await;
    let due = meter.ledger.due_usage(meter.now, None, 1_000).await.unwrap();
    let day = Span::from_secs(86_400);
    for batch in &due {
        let at = if batch.id == due[0].id { DELIVERY_BACKOFF_MAX } else { day };
        let (error, at) = ("no".into(), meter.now + at);
        let retry = Settlement::Retry { status: None, error, may_be_stored: true, at };
        meter.ledger.settle_usage(batch.id, retry, &fence).await.unwrap();
    }
    meter.ledger.recall_usage(meter.now, &fence).await.unwrap();
    let again = meter.ledger.due_usage(meter.now, None, 1_000).await.unwrap();
    assert_eq!(again.len(), 501, "all but the batch with the longest backoff");
    assert!(again.iter().all(|batch| batch.id != due[0].id && batch.attempts == 1));
}

#[tokio::test]
async fn answers_not_found_are_counted_while_they_come_in_a_row() {
    let mut meter = Meter::open().await;
    meter.hold(1, 1).await;
    meter.pass(MINUTE);
    meter.emit().await;
    let fence = meter.take(JobName::UsageDelivery).await;
    let mut counted = Vec::new();
    for status in [Some(404), Some(404), None, Some(404), Some(503), Some(404)] {
        let due = meter.ledger.due_usage(meter.now, None, 1).await.unwrap();
        let (error, at) = ("no".into(), meter.now);
        let retry = Settlement::Retry { status, error, may_be_stored: false, at };
        meter.ledger.settle_usage(due[0].id, retry, &fence).await.unwrap();
        counted.push(meter.ledger.due_usage(meter.now, None, 1).await.unwrap()[0].not_found);
    }
    assert_eq!(counted, [1, 2, 0, 1, 0, 1]);
}

#[tokio::test]
async fn a_batch_that_the_sink_may_have_is_known_as_such_for_ever() {
    let mut meter = Meter::open().await;
    meter.hold(1, 1).await;
    meter.pass(MINUTE);
    meter.emit().await;
    let fence = meter.take(JobName::UsageDelivery).await;
    let mut known = Vec::new();
    for may_be_stored in [false, true, false] {
        let due = meter.ledger.due_usage(meter.now, None, 1).await.unwrap();
        known.push(due[0].may_be_stored);
        let (error, at) = ("no".into(), meter.now);
        let retry = Settlement::Retry { status: None, error, may_be_stored, at };
        meter.ledger.settle_usage(due[0].id, retry, &fence).await.unwrap();
    }
    assert_eq!(known, [false, false, true]);
    let due = meter.ledger.due_usage(meter.now, None, 1).await.unwrap();
    let dead = Settlement::Dead { status: 413, error: "too large".into(), at: meter.now };
    meter.ledger.settle_usage(due[0].id, dead, &fence).await.unwrap();
    assert!(meter.ledger.send_usage_again(&tenant(1), due[0].id, meter.now).await.unwrap());
    let again = meter.ledger.due_usage(meter.now, None, 1).await.unwrap();
    assert!(again[0].may_be_stored && again[0].attempts == 0, "{again:?}");
}

#[tokio::test]
async fn retention_leaves_what_is_not_metered_or_not_delivered() {
    let mut meter = Meter::open().await;
    meter.ledger.ensure_job(JobName::UsageEmission, MINUTE, meter.now).await.unwrap();
    let run = meter.take(JobName::Retention).await;
    let early = meter.hold(1, 1).await;
    meter.pass(MINUTE);
    meter.end(early, EndReason::Released).await;
    meter.pass(TERM);
    let purged = meter.ledger.purge(&run, meter.now, 100).await.unwrap();
    assert_eq!(purged.sessions, 0, "no window has it yet");

    let emitted = meter.emit().await.expect("a window");
    meter.pass(MINUTE);
    let late = meter.hold(1, 1).await;
    meter.pass(MINUTE);
    meter.end(late, EndReason::Released).await;
    meter.pass(TERM);
    let purged = meter.ledger.purge(&run, meter.now, 100).await.unwrap();
    assert_eq!(purged.sessions, 1);
    assert_eq!(meter.ledger.session(early).await.unwrap(), None);
    assert!(meter.ledger.session(late).await.unwrap().is_some(), "no window has it yet");

    let windows = async |meter: &Meter| {
        let all = Window::new(emitted.window.starts(), meter.now + TERM).unwrap();
        meter.ledger.usage_windows(&tenant(1), all, None, 10).await.unwrap().items.len()
    };
    meter.emit().await;
    meter.pass(MINUTE);
    assert!(!meter.ledger.purge_usage(&run, meter.now, 10).await.unwrap());
    assert_eq!(windows(&meter).await, 2, "the sink has neither");
    meter.deliver().await;
    let early = emitted.window.ends() + Span::from_millis(1);
    meter.ledger.purge_usage(&run, early, 10).await.unwrap();
    assert_eq!(windows(&meter).await, 1);
    meter.ledger.purge_usage(&run, meter.now, 10).await.unwrap();
    meter.hold(2, 1).await;
    meter.pass(MINUTE);
    let next = meter.emit().await.expect("a window").window;
    assert!(next.starts() > emitted.window.ends(), "it follows on the last one, which stays");
    assert_eq!(meter.ledger.purge(&run, meter.now, 100).await.unwrap().sessions, 1, "metered");
}

/// Returns a ledger with a capacity that ended a term ago, and a run of retention.
async fn after_a_term() -> (Meter, Fence) {
    let mut meter = Meter::open().await;
    let run = meter.take(JobName::Retention).await;
    let session = meter.hold(1, 1).await;
    meter.pass(MINUTE);
    meter.end(session, EndReason::Released).await;
    meter.pass(TERM);
    (meter, run)
}

#[tokio::test]
async fn retention_deletes_capacities_of_a_ledger_that_never_metered_usage() {
    let (meter, run) = after_a_term().await;
    assert_eq!(meter.ledger.purge(&run, meter.now, 100).await.unwrap().sessions, 1);
}

#[tokio::test]
async fn retention_waits_for_the_first_window_once_a_node_meters_usage() {
    let (meter, run) = after_a_term().await;
    meter.ledger.ensure_job(JobName::UsageEmission, MINUTE, meter.now).await.unwrap();
    assert_eq!(meter.ledger.purge(&run, meter.now, 100).await.unwrap().sessions, 0);
}

#[tokio::test]
async fn a_repair_of_registry_time_prolongs_no_capacity() {
    let mut meter = Meter::open().await;
    let true_start = meter.now;
    let early = meter.hold(1, 1).await;
    let true_now = true_start + MINUTE;
    meter.pass(TERM);
    let future = meter.hold(2, 1).await;
    let planned = meter.ledger.plan_clock_repair(true_now, "ann").await.unwrap().expect("a wrong time");
    planned.apply().await.unwrap();
    let mut heard = Vec::new();
    for session in [early, future] {
        let pool = meter.lives[&session].0.clone();
        heard.push(meter.ledger.pool_head(&pool).await.unwrap().sessions[0].last_heartbeat);
    }
    assert_eq!(heard, [true_start, true_now], "the old end, and a TTL from the repair");
    assert_eq!(meter.ledger.trusted_time().await.unwrap(), Some(true_now));
}

#[tokio::test]
async fn usage_that_no_sink_has_is_counted() {
    let mut meter = Meter::open().await;
    let unbilled = async |meter: &Meter| meter.ledger.unbilled_usage().await.unwrap();
    let (lasting, early) = (meter.hold(1, 1).await, meter.hold(2, 1).await);
    assert!(unbilled(&meter).await.is_none(), "no node ever metered usage");
    meter.ledger.ensure_job(JobName::UsageEmission, MINUTE, meter.now).await.unwrap();
    assert_eq!(unbilled(&meter).await, UnbilledUsage { sessions: 2, batches: 0 });
    meter.pass(MINUTE);
    meter.end(early, EndReason::Released).await;
    meter.emit().await;
    assert_eq!(unbilled(&meter).await, UnbilledUsage { sessions: 1, batches: 1 });
    let fence = meter.take(JobName::UsageDelivery).await;
    let due = meter.ledger.due_usage(meter.now, None, 1).await.unwrap();
    let dead = Settlement::Dead { status: 410, error: String::new(), at: meter.now };
    meter.ledger.settle_usage(due[0].id, dead, &fence).await.unwrap();
    meter.ledger.complete_job(&fence, meter.now).await.unwrap();
    assert_eq!(unbilled(&meter).await, UnbilledUsage { sessions: 1, batches: 1 });
    meter.ledger.send_dead_usage_again(&tenant(1), meter.now).await.unwrap();
    meter.deliver().await;
    meter.pass(MINUTE);
    meter.end(lasting, EndReason::Released).await;
    assert_eq!(unbilled(&meter).await, UnbilledUsage { sessions: 1, batches: 0 });
    meter.emit().await;
    meter.deliver().await;
    assert!(unbilled(&meter).await.is_none());
}
