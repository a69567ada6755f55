//! Emission records every session's usage exactly once, in contiguous windows and bounded batches.

use std::collections::{HashMap, HashSet};

use seatkeeper_core::{EndReason, RegistryTime, Span, Usage, Window};
use seatkeeper_ledger::Error;
use seatkeeper_ledger::jobs::JobName;

use super::meter::{MINUTE, Meter, TERM, tenant};
use crate::story::START;

const DAY: Span = Span::from_secs(24 * 3_600);

/// Returns the midnight (UTC) after `days` days from the beginning of the day of `START`.
fn midnight(days: u64) -> RegistryTime {
    RegistryTime::from_millis((START.as_millis() / DAY.as_millis() + days) * DAY.as_millis())
}

#[tokio::test]
async fn windows_start_with_the_first_session_and_follow_one_another() {
    let mut meter = Meter::open().await;
    assert_eq!(meter.emit().await, None, "nobody ever held a capacity");
    meter.pass(MINUTE);
    let began = meter.now;
    let session = meter.hold(1, 1).await;
    assert_eq!(meter.emit().await, None, "no time has passed");
    let mut starts = began;
    for _ in 0..3 {
        meter.pass(MINUTE);
        let emitted = meter.emit().await.expect("a window");
        assert_eq!(Some(emitted.window), Window::new(starts, meter.now));
        assert_eq!((emitted.records, emitted.batches), (1, 1));
        starts = meter.now;
    }
    meter.end(session, EndReason::Released).await;
    meter.pass(MINUTE);
    assert_eq!(meter.emit().await, None, "nobody held one since");
    meter.pass(MINUTE);
    meter.hold(2, 1).await;
    meter.pass(MINUTE);
    let window = meter.emit().await.expect("a window").window;
    assert_eq!(window.starts(), starts, "and yet no time is left out");
}

#[tokio::test]
async fn a_session_counts_from_its_start_until_it_is_over_by_whatever_came_first() {
    let mut meter = Meter::open().await;
    let (lasting, upgraded) = (meter.hold(1, 1).await, meter.hold(2, 1).await);
    let (released, expired) = (meter.hold(3, 2).await, meter.hold(4, 3).await);
    meter.pass(MINUTE);
    meter.emit().await;
    meter.deliver().await;

    meter.pass(MINUTE);
    meter.end(upgraded, EndReason::Upgraded).await;
    let upgrade = meter.hold(2, 3).await;
    meter.end(released, EndReason::Released).await;
    meter.pass(TERM);
    // The end is recorded a day after the expiry. The other expired sessions have no recorded end.
    meter.pass(Span::from_secs(24 * 3_600));
    meter.end(expired, EndReason::Expired).await;
    meter.emit().await;
    let billed = meter.deliver().await;

    let mut usage: HashMap<_, Usage> = HashMap::new();
    for record in billed.iter().flat_map(|batch| &batch.records) {
        let sum = usage.entry(record.session).or_default();
        *sum = *sum + record.usage;
    }
    let whole = Usage::from_micros(1_000_000);
    let minute = |tier: u64| Usage::from_micros((60_000 * tier * 2 + 2_592) / (2 * 2_592));
    assert_eq!(usage[&lasting] + minute(1), whole);
    assert_eq!(usage[&upgraded] + minute(1), Usage::total(Span::from_secs(120), seatkeeper_core::Tier(1)));
    assert_eq!(usage[&upgrade], whole + whole + whole);
    assert_eq!(usage[&released] + minute(2), Usage::total(Span::from_secs(120), seatkeeper_core::Tier(2)));
    assert_eq!(usage[&expired] + minute(3), whole + whole + whole);
}

#[tokio::test]
async fn what_piled_up_is_put_on_record_in_windows_that_cross_no_midnight() {
    let mut meter = Meter::open().await;
    let first = meter.hold(1, 1).await;
    meter.pass(DAY);
    meter.pass(DAY);
    meter.end(first, EndReason::Released).await;
    meter.pass(TERM);
    meter.hold(2, 3).await;
    meter.pass(DAY);
    let (until, fence) = (meter.now, meter.take(JobName::UsageEmission).await);
    let mut windows = Vec::new();
    while let Some(emitted) = meter.ledger.emit_usage(until, 1_000, &fence).await.unwrap() {
        assert_eq!(emitted.records, 1, "{emitted:?}");
        windows.push((emitted.window.starts(), emitted.window.ends()));
    }
    meter.ledger.complete_job(&fence, meter.now).await.unwrap();
    let expected = vec![
        (START, midnight(1)),
        (midnight(1), midnight(2)),
        (midnight(2), midnight(3)),
        (midnight(32), midnight(33)),
        (midnight(33), until),
    ];
    assert_eq!(windows, expected, "the days without use are one window without records");
    meter.deliver().await;
    let span = Window::new(START, until).unwrap();
    let books = meter.ledger.reconcile_usage(&tenant(1), span).await.unwrap().unwrap();
    assert_eq!((books.windows, books.first_difference), (6, None));
    let lives = meter.lives.values().map(|(_, life)| life.used_by(until));
    assert_eq!(books.recorded.delivered, lives.sum());
}

#[tokio::test]
async fn a_use_too_short_for_a_record_before_midnight_is_recorded_after_it() {
    let mut meter = Meter::open().await;
    meter.pass(midnight(1).since(START));
    meter.now = meter.now - Span::from_millis(1);
    let began = meter.now;
    meter.hold(1, 1).await;
    meter.pass(DAY);
    let emitted = meter.emit().await.expect("a window");
    assert_eq!(Some(emitted.window), Window::new(midnight(1), began + DAY));
    assert_eq!(emitted.usage, Usage::total(DAY, seatkeeper_core::Tier(1)));
}

#[tokio::test]
async fn what_is_too_little_to_tell_is_told_once_it_has_grown() {
    let mut meter = Meter::open().await;
    meter.hold(1, 1).await;
    meter.pass(Span::from_millis(1_295));
    assert_eq!(meter.emit().await, None, "half a millionth is not there yet");
    meter.pass(Span::from_millis(1));
    let emitted = meter.emit().await.expect("a window");
    assert_eq!((emitted.window.starts(), emitted.usage), (START, Usage::from_micros(1)));
    meter.pass(Span::from_millis(2_591));
    assert_eq!(meter.emit().await, None);
}

#[tokio::test]
async fn a_batch_is_one_tenants_and_no_longer_than_it_may_be() {
    let mut meter = Meter::open().await;
    meter.batch_records = 3;
    for user in 0..7 {
        meter.hold_of(&tenant(1), user, 1).await;
        meter.hold_of(&tenant(3), user, 2).await;
    }
    meter.hold_of(&tenant(2), 0, 3).await;
    meter.pass(MINUTE);
    let emitted = meter.emit().await.expect("a window");
    assert_eq!((emitted.records, emitted.batches), (15, 7));
    let batches = meter.deliver().await;
    let ids: HashSet<_> = batches.iter().map(|batch| batch.id).collect();
    assert_eq!(ids.len(), 7);
    for (of, mut sizes) in [(1, vec![3, 3, 1]), (2, vec![1]), (3, vec![3, 3, 1])] {
        let of = batches.iter().filter(|batch| batch.tenant == tenant(of));
        let mut found: Vec<_> = of.map(|batch| batch.records.len()).collect();
        found.sort_unstable();
        sizes.sort_unstable();
        assert_eq!(found, sizes);
    }
    for batch in &batches {
        for record in &batch.records {
            let (pool, life) = &meter.lives[&record.session];
            assert_eq!(pool.tenant, batch.tenant);
            assert_eq!(&*pool.name, format!("{}/{}", record.user, record.capacity));
            assert_eq!(record.usage, life.used_by(meter.now));
        }
    }
}

#[tokio::test]
async fn more_sessions_than_one_read_takes_are_each_metered_once() {
    let mut meter = Meter::open().await;
    let ended = meter.hold_of(&tenant(3), 1, 1).await;
    for of in [1, 2, 4] {
        meter.crowd(&tenant(of), 7_000).await;
    }
    meter.pass(MINUTE);
    meter.end(ended, EndReason::Released).await;
    let emitted = meter.emit().await.expect("a window");
    assert_eq!((emitted.records, emitted.batches), (21_001, 22));
    let records = meter.deliver().await.into_iter().flat_map(|batch| batch.records);
    let sessions: HashSet<_> = records.map(|record| record.session).collect();
    assert_eq!(sessions.len(), 21_001);
}

#[tokio::test]
async fn ninety_days_of_random_lives_sum_to_the_rounding_of_each() {
    let mut meter = Meter::open().await;
    let mut seed = 0x05a6e_u64;
    println!("seed {seed:#x}");
    let mut throw = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    const DAY_MS: u64 = 24 * 3_600 * 1_000;
    let mut live = Vec::new();
    let mut billed: HashMap<_, Usage> = HashMap::new();
    let end = START + Span::from_millis(90 * DAY_MS);
    let mut user = 0;
    while meter.now < end {
        user += 1;
        live.push(meter.hold(user, 1 + throw(3) as u8).await);
        if throw(3) == 0 {
            let id = live.swap_remove(throw(live.len() as u64) as usize);
            meter.end(id, EndReason::Released).await;
        }
        meter.pass(Span::from_millis(throw(DAY_MS)));
        if throw(2) == 0 {
            meter.emit().await;
            for record in meter.deliver().await.into_iter().flat_map(|batch| batch.records) {
                let sum = billed.entry(record.session).or_default();
                *sum = *sum + record.usage;
            }
        }
    }
    meter.emit().await;
    for record in meter.deliver().await.into_iter().flat_map(|batch| batch.records) {
        let sum = billed.entry(record.session).or_default();
        *sum = *sum + record.usage;
    }
    for (id, (_, life)) in &meter.lives {
        let billed = billed.get(id).copied().unwrap_or_default();
        assert_eq!(billed, life.used_by(meter.now), "{life:?}");
    }
}

#[tokio::test]
async fn a_copy_without_the_last_window_records_no_usage_until_an_operator_confirms() {
    let mut meter = Meter::open().await;
    meter.hold(1, 1).await;
    meter.pass(MINUTE);
    meter.emit().await.expect("a window");
    meter.deliver().await;
    let confirmed = meter.now;
    meter.pass(MINUTE);
    let lost = meter.emit().await.expect("a window that the copy lacks");
    assert_eq!(meter.deliver().await.len(), 1, "the sink has the window");
    let mut copy = meter.place.connect_unguarded().await;
    for statement in [
        "DELETE FROM usage_windows WHERE starts_at = (SELECT MAX(starts_at) FROM usage_windows)",
        "DELETE FROM usage_outbox WHERE window_starts_at = (SELECT MAX(window_starts_at) FROM usage_outbox)",
        "UPDATE usage_ledger SET identity = 'elsewhere'",
    ] {
        sqlx::query(statement).execute(&mut copy).await.unwrap();
    }

    meter.pass(MINUTE);
    let (until, fence) = (meter.now, meter.take(JobName::UsageEmission).await);
    assert!(meter.ledger.is_usage_held().await.unwrap());
    let held = meter.emit_by(until, &fence).await;
    assert!(matches!(held, Err(Error::UsageHeld)), "the sink would drop the window: {held:?}");
    meter.ledger.complete_job(&fence, meter.now).await.unwrap();
    assert_eq!(meter.ledger.usage_metered_until().await.unwrap(), Some(confirmed));

    meter.ledger.confirm_usage().await.unwrap();
    assert!(!meter.ledger.is_usage_held().await.unwrap());
    let anew = meter.emit().await.expect("a window");
    assert_eq!(anew.window.starts(), lost.window.starts());
    assert_eq!(anew.window.ends(), meter.now);
}

#[tokio::test]
async fn a_copy_without_any_window_records_no_usage_until_an_operator_confirms() {
    let mut meter = Meter::open().await;
    meter.hold(1, 1).await;
    let mut copy = meter.place.connect_unguarded().await;
    sqlx::query("UPDATE buckets SET ledger_identity = 'elsewhere' WHERE id = 7")
        .execute(&mut copy)
        .await
        .unwrap();

    meter.pass(MINUTE);
    let (until, fence) = (meter.now, meter.take(JobName::UsageEmission).await);
    assert!(meter.ledger.is_usage_held().await.unwrap());
    let held = meter.emit_by(until, &fence).await;
    assert!(matches!(held, Err(Error::UsageHeld)), "the sink may know the first window: {held:?}");
    meter.ledger.complete_job(&fence, meter.now).await.unwrap();

    meter.ledger.confirm_usage().await.unwrap();
    assert!(!meter.ledger.is_usage_held().await.unwrap());
    assert_eq!(meter.emit().await.expect("a window").window.ends(), meter.now);
}
