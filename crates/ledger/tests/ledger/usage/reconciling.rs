//! Reconciliation compares held, recorded and delivered usage, and finds every difference.

use seatkeeper_core::{EndReason, RegistryTime, Span, Usage, Window};
use seatkeeper_ledger::jobs::JobName;
use seatkeeper_ledger::usage::{Settlement, UsageBooks};
use sqlx::{AssertSqlSafe, Executor as _};

use super::meter::{MINUTE, Meter, TERM, tenant};
use crate::place::time_at;
use crate::story::START;

async fn books(meter: &Meter, of: u128) -> UsageBooks {
    let span = Window::new(START, meter.now).unwrap();
    meter.ledger.reconcile_usage(&tenant(of), span).await.unwrap().expect("not too many windows")
}

/// Returns ten minutes of three users, with an upgrade and a release, and of a second tenant.
async fn ten_minutes() -> Meter {
    let mut meter = Meter::open().await;
    let (first, second) = (meter.hold(1, 1).await, meter.hold(2, 2).await);
    meter.hold(3, 3).await;
    meter.hold_of(&tenant(2), 1, 3).await;
    for minute in 0..10 {
        meter.pass(MINUTE);
        if minute == 3 {
            meter.end(first, EndReason::Upgraded).await;
            meter.hold(1, 3).await;
        }
        if minute == 6 {
            meter.end(second, EndReason::Released).await;
        }
        meter.emit().await;
    }
    meter
}

/// Changes the tables directly, bypassing the ledger.
async fn tamper(meter: &Meter, statement: &str) {
    let mut connection = meter.place.connect_unguarded().await;
    connection.execute(AssertSqlSafe(statement.to_owned())).await.unwrap();
}

#[tokio::test]
async fn what_was_held_recorded_and_delivered_agrees_once_the_sink_has_all() {
    let mut meter = ten_minutes().await;
    let lives = meter.lives.values().filter(|(pool, _)| pool.tenant == tenant(1));
    let held: Usage = lives.map(|(_, life)| life.used_by(meter.now)).sum();
    let found = books(&meter, 1).await;
    assert_eq!((found.windows, found.held, found.recorded.pending), (10, held, held));
    let first = found.first_difference.expect("nothing is delivered");
    assert_eq!(first.window.starts(), START);

    meter.deliver().await;
    let found = books(&meter, 1).await;
    assert_eq!((found.recorded.delivered, found.first_difference), (held, None));
    let other = books(&meter, 2).await;
    assert_eq!((other.held, other.first_difference), (other.recorded.delivered, None));
    let nobody = books(&meter, 3).await;
    assert_eq!((nobody.windows, nobody.held, nobody.first_difference), (10, Usage::ZERO, None));
}

#[tokio::test]
async fn adjacent_spans_compare_each_window_once() {
    let mut meter = ten_minutes().await;
    meter.deliver().await;
    let within_the_third = START + MINUTE + MINUTE + Span::from_millis(1);
    let reconciled = async |from, to| {
        let span = Window::new(from, to).unwrap();
        meter.ledger.reconcile_usage(&tenant(1), span).await.unwrap().unwrap()
    };
    let (before, after) =
        (reconciled(START, within_the_third).await, reconciled(within_the_third, meter.now).await);
    let third = START + MINUTE + MINUTE + MINUTE;
    assert_eq!((before.windows, before.span), (3, Window::new(START, third)));
    assert_eq!((after.windows, after.span), (7, Window::new(third, meter.now)));
    assert_eq!((before.first_difference, after.first_difference), (None, None));
    assert_eq!(before.held + after.held, books(&meter, 1).await.held);
    let listed = async |from, to| {
        let span = Window::new(from, to).unwrap();
        meter.ledger.usage_windows(&tenant(1), span, None, 100).await.unwrap().items.len()
    };
    assert_eq!(listed(START, within_the_third).await, 3);
    assert_eq!(listed(within_the_third, meter.now).await, 7);
    assert_eq!(reconciled(meter.now, meter.now + TERM).await, UsageBooks::default());
}

#[tokio::test]
async fn a_dead_batch_of_a_months_last_day_is_missing_from_that_month_alone() {
    let mut meter = Meter::open().await;
    // 15 January 2027.
    meter.hold(1, 1).await;
    meter.pass(Span::from_secs(25 * 24 * 3_600));
    meter.emit().await;
    let february = RegistryTime::from_millis(1_801_440_000_000);
    let due = meter.ledger.due_usage(meter.now, None, 100).await.unwrap();
    let last =
        due.iter().find(|batch| batch.window.ends() == february).expect("a window up to the month's end");
    let fence = meter.take(JobName::UsageDelivery).await;
    let dead = Settlement::Dead { status: 400, error: String::new(), at: meter.now };
    meter.ledger.settle_usage(last.id, dead, &fence).await.unwrap();
    meter.ledger.complete_job(&fence, meter.now).await.unwrap();
    meter.deliver().await;
    let month = async |from, to| {
        let span = Window::new(from, to).unwrap();
        meter.ledger.reconcile_usage(&tenant(1), span).await.unwrap().unwrap()
    };
    let (january, february) = (month(START, february).await, month(february, meter.now).await);
    assert_eq!(january.first_difference.map(|books| books.window), Some(last.window));
    assert_eq!(february.first_difference, None);
}

#[tokio::test]
async fn the_first_window_that_differs_is_named() {
    let mut meter = ten_minutes().await;
    let due = meter.ledger.due_usage(meter.now, None, 100).await.unwrap();
    let fifth = START + MINUTE + MINUTE + MINUTE + MINUTE;
    let late = due.iter().find(|batch| batch.window.starts() == fifth && batch.tenant == tenant(1)).unwrap();
    let fence = meter.take(JobName::UsageDelivery).await;
    let dead = Settlement::Dead { status: 400, error: String::new(), at: meter.now };
    meter.ledger.settle_usage(late.id, dead, &fence).await.unwrap();
    meter.ledger.complete_job(&fence, meter.now).await.unwrap();
    meter.deliver().await;
    let found = books(&meter, 1).await.first_difference.expect("a dead batch is not delivered");
    assert_eq!((found.window, found.recorded.dead), (late.window, found.held));

    let second = "UPDATE usage_outbox SET micro_units = micro_units + 1 WHERE window_starts_at =
         (SELECT starts_at FROM usage_windows ORDER BY starts_at LIMIT 1 OFFSET 1)";
    tamper(&meter, second).await;
    let found = books(&meter, 1).await.first_difference.expect("more is recorded than was held");
    assert_eq!(found.window.starts(), START + MINUTE);
    assert_eq!(found.recorded.usage(), found.held + Usage::from_micros(1));

    let first = "DELETE FROM usage_windows WHERE starts_at =
         (SELECT starts_at FROM usage_windows ORDER BY starts_at LIMIT 1 OFFSET 1)";
    tamper(&meter, first).await;
    let found = books(&meter, 1).await.first_difference.expect("a gap");
    assert_eq!((found.window.starts(), found.recorded.usage()), (START + MINUTE, Usage::ZERO));
    assert!(found.held > Usage::ZERO);
}

#[tokio::test]
async fn more_than_can_be_compared_at_once_is_refused() {
    let mut meter = ten_minutes().await;
    meter.crowd(&tenant(4), 1_200).await;
    // Windows as if usage had been metered each minute for a month.
    let windows = format!(
        "WITH RECURSIVE minute (n) AS (SELECT 11 UNION ALL SELECT n + 1 FROM minute WHERE n < 44999)
         INSERT INTO usage_windows (starts_at, ends_at, records, micro_units)
         SELECT {}, {}, 1, 1 FROM minute",
        time_at("1800000000 + n * 60"),
        time_at("1800000060 + n * 60")
    );
    tamper(&meter, &windows).await;
    let reconciled = async |of, minutes: u64| {
        let span = Window::new(START, START + Span::from_secs(60 * minutes)).unwrap();
        meter.ledger.reconcile_usage(&tenant(of), span).await.unwrap()
    };
    assert_eq!(reconciled(3, 45_000).await.expect("of nobody").windows, 44_999);
    assert_eq!(reconciled(4, 45_000).await, None, "1,200 sessions in 45,000 windows");
    assert_eq!(reconciled(4, 60).await.expect("less").windows, 60);
}
