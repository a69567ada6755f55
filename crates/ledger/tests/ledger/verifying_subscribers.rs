//! The replay finds violations in the records of plans and subscriptions.

use seatkeeper_core::{PoolId, PoolKind, Seats, Span, UserId};
use seatkeeper_ledger::Write;
use seatkeeper_ledger::audit::Stream;
use seatkeeper_ledger::plans::PlanChange;
use seatkeeper_ledger::subscriptions::{NewSubscription, SubscriptionChange};
use seatkeeper_ledger::verify::{Breach, Verdict};
use sqlx::Executor as _;

use crate::story::{
    START, Story, TTL, admin, by, ledger, named, new_subscription, planned, subscribed, tenant,
};

/// Builds the history of a user with an ended subscription to a changing plan and a new subscription to a
/// second plan. One device was admitted before the first subscription and two during it. The history is valid
/// until `tamper` runs.
async fn found_after(tamper: &'static str) -> Option<Breach> {
    let (place, ledger) = ledger().await;
    let origin = admin();
    let ann = UserId::from("ann");
    planned(&ledger, "aaa", 1).await;
    planned(&ledger, "family", 2).await;
    let limit = |devices| PlanChange { device_limit: Some(Seats(devices)), ..PlanChange::default() };
    ledger.update_plan(&tenant(), &named("aaa"), limit(2), by(&origin)).await.unwrap();
    let mut story = Story::of_subscriber(&ledger, "ann").await;
    let mut events = vec![story.admit("one").1];

    let new = NewSubscription {
        starts_at: Some(START + Span::from_secs(10)),
        ends_at: Some(START + Span::from_secs(100)),
        ..new_subscription("ann", "family")
    };
    let made = ledger.create_subscription(new, by(&origin)).await.unwrap().value;
    for (seconds, devices, device) in [(20, 3, "two"), (30, 4, "three"), (110, 5, "")] {
        story.now = START + Span::from_secs(seconds);
        let write = Write { at: story.now, ..by(&origin) };
        ledger.update_plan(&tenant(), &named("family"), limit(devices), write).await.unwrap();
        let terms = ledger.subscriber(&tenant(), &ann).await.unwrap().entitled(story.now, TTL).terms;
        (story.version, story.limit) = (terms.version, terms.limit.0);
        if !device.is_empty() {
            events.push(story.admit(device).1);
        }
    }
    ledger.apply(&events).await.unwrap();
    let write = Write { at: story.now, ..by(&origin) };
    let again = SubscriptionChange { cancel: true, ..SubscriptionChange::default() };
    assert!(ledger.update_subscription(&tenant(), made.id, &again, write).await.is_err(), "it is over");
    ledger.create_subscription(new_subscription("ann", "basic"), write).await.unwrap();
    subscribed(&ledger, "bob", "basic").await;

    let mut connection = place.connect_unguarded().await;
    assert_eq!(connection.execute(tamper).await.unwrap().rows_affected(), 1, "{tamper}");
    match ledger.verify(|_| ()).await.unwrap() {
        Verdict::Proven(_) => None,
        Verdict::Broken(finding) => Some(finding.breach),
    }
}

/// Changes a record of the history. Ann's admissions have seq 1 to 3, and so have Ann's subscription records.
/// Plan `family` has four records. Plan `aaa` has no subscriber, and its name sorts before `ann`.
macro_rules! tampered {
    ($change:literal, $record:literal) => {
        found_after(concat!("UPDATE audit_log SET ", $change, " WHERE ", $record)).await
    };
}

#[tokio::test]
async fn an_untouched_history_is_proven() {
    assert_eq!(tampered!("actor = 'somebody'", "pool_id = 'family' AND seq = 2"), None);
}

#[tokio::test]
async fn a_missing_record_of_a_plan_or_a_subscription_is_a_gap() {
    let gap = |expected| Some(Breach::Gap { expected });
    let without = async |record| found_after(record).await;
    let plan = "DELETE FROM audit_log WHERE pool_id = 'family' AND seq = 4";
    // Only the stream's head reveals a missing newest record.
    let tail = Breach::HeadDiffers { stream: Stream::Plan, recorded: 3, head: 4 };
    assert_eq!(without(plan).await, Some(tail));
    assert_eq!(
        without("DELETE FROM audit_log WHERE pool_id = 'ann' AND stream = 'entitlement' AND seq = 1").await,
        gap(1)
    );
    assert_eq!(
        without("DELETE FROM audit_log WHERE pool_id = 'ann' AND stream = 'entitlement' AND seq = 2").await,
        gap(2)
    );
    assert_eq!(without("DELETE FROM audit_log WHERE pool_id = 'aaa' AND seq = 1").await, gap(1));
    // Pools are replayed in order of names, so Ann's admission misses its plan version before the plan's own
    // gap is found.
    let breach = without("DELETE FROM audit_log WHERE pool_id = 'family' AND seq = 2").await;
    assert!(matches!(breach, Some(Breach::LimitNotGranted { granted: None, .. })), "{breach:?}");
}

#[tokio::test]
async fn an_action_that_cannot_come_there_is_malformed() {
    for breach in [
        tampered!(
            "action = 'subscription_updated'",
            "pool_id = 'ann' AND stream = 'entitlement' AND seq = 1"
        ),
        tampered!(
            "action = 'subscription_created'",
            "pool_id = 'ann' AND stream = 'entitlement' AND seq = 2"
        ),
        tampered!(
            "action = 'subscription_updated'",
            "pool_id = 'ann' AND stream = 'entitlement' AND seq = 3"
        ),
        tampered!("detail = '{}'", "pool_id = 'ann' AND stream = 'entitlement' AND seq = 1"),
        tampered!("action = 'plan_updated'", "pool_id = 'family' AND seq = 1"),
        tampered!("action = 'plan_created'", "pool_id = 'family' AND seq = 2"),
    ] {
        assert_eq!(breach, Some(Breach::Malformed));
    }
}

#[tokio::test]
async fn versions_that_do_not_rise_are_found() {
    let breach = tampered!("limit_version = 1", "pool_id = 'ann' AND stream = 'entitlement' AND seq = 2");
    assert!(matches!(breach, Some(Breach::VersionRanBack { version: 1, .. })), "{breach:?}");
    let breach = tampered!("limit_version = 1", "pool_id = 'aaa' AND seq = 2");
    assert_eq!(breach, Some(Breach::VersionRanBack { version: 1, newest: 1 }));
}

#[tokio::test]
async fn a_limit_that_plan_and_subscription_do_not_grant_is_found() {
    let wrong = |breach: Option<Breach>, told: u32, grants: Option<u32>| {
        let same = matches!(&breach, Some(Breach::LimitNotGranted { limit, granted, .. })
            if (*limit, *granted) == (told, grants));
        assert!(same, "{breach:?}");
    };
    wrong(tampered!("limit_seats = 9", "pool_id = 'ann' AND stream = 'session' AND seq = 1"), 9, Some(1));
    wrong(tampered!("limit_seats = 9", "pool_id = 'ann' AND stream = 'session' AND seq = 2"), 9, Some(3));
    wrong(tampered!("limit_seats = 9", "pool_id = 'ann' AND stream = 'entitlement' AND seq = 1"), 9, Some(1));
    wrong(tampered!("limit_seats = 9", "pool_id = 'ann' AND stream = 'entitlement' AND seq = 3"), 9, Some(1));
    wrong(tampered!("limit_seats = 9", "pool_id = 'family' AND seq = 2"), 3, Some(9));
    // A version without a phase, a version of a missing change, and a version from the future.
    wrong(tampered!("limit_version = 4", "pool_id = 'ann' AND stream = 'session' AND seq = 1"), 1, None);
    wrong(
        tampered!("limit_version = limit_version - 4", "pool_id = 'ann' AND stream = 'session' AND seq = 3"),
        4,
        Some(3),
    );
    wrong(tampered!("limit_version = 4002", "pool_id = 'ann' AND stream = 'session' AND seq = 3"), 4, None);
    // Without terms the limit is 1. The pool claims 3.
    wrong(tampered!("limit_version = 0", "pool_id = 'ann' AND stream = 'session' AND seq = 2"), 3, Some(1));
}

#[tokio::test]
async fn an_admission_by_what_a_subscription_grants_at_another_time_is_found() {
    for breach in [
        // The version of the next phase: the subscription had not ended.
        tampered!("limit_version = limit_version + 1", "pool_id = 'ann' AND stream = 'session' AND seq = 3"),
        // The same version, but the subscription had not begun, or was over.
        tampered!(
            "detail = replace(detail, '\"starts_at\":\"2027-01-15T08:00:10', '\"starts_at\":\"2027-01-15T08:00:29')",
            "pool_id = 'ann' AND stream = 'entitlement' AND seq = 1"
        ),
        tampered!(
            "detail = replace(detail, '\"ends_at\":\"2027-01-15T08:01:40', '\"ends_at\":\"2027-01-15T08:00:11')",
            "pool_id = 'ann' AND stream = 'entitlement' AND seq = 1"
        ),
    ] {
        assert!(matches!(breach, Some(Breach::NotInForce { .. })), "{breach:?}");
    }
}

#[tokio::test]
async fn a_capacity_has_one_seat() {
    let (place, ledger) = ledger().await;
    let mut story = Story::devices("ann");
    story.pool = PoolId::new(PoolKind::Capacity, tenant(), "ann/f4");
    (story.limit, story.version) = (1, 1);
    let (_, event) = story.admit("ann");
    ledger.apply(&[event]).await.unwrap();
    let verdict = ledger.verify(|_| ()).await.unwrap();
    assert!(matches!(verdict, Verdict::Proven(_)), "{verdict:?}");

    let mut connection = place.connect_unguarded().await;
    connection.execute("UPDATE audit_log SET limit_seats = 2").await.unwrap();
    let Verdict::Broken(finding) = ledger.verify(|_| ()).await.unwrap() else { panic!("two seats") };
    assert_eq!(finding.breach, Breach::LimitNotGranted { limit: 2, version: 1, granted: Some(1) });
}

#[tokio::test]
async fn the_version_of_a_group_s_terms_is_its_limit_up_to_eight() {
    for (limit, version, granted) in [(4, 4, Some(4)), (5, 4, Some(4)), (9, 9, None), (1, 0, Some(1))] {
        let (_place, ledger) = ledger().await;
        let mut story = Story::devices("ann");
        story.pool = PoolId::new(PoolKind::Group, tenant(), "0193d2f4-0007-8000-8abc-0123456789ab");
        (story.limit, story.version) = (limit, version);
        let (_, event) = story.admit("tv");
        ledger.apply(&[event]).await.unwrap();
        match ledger.verify(|_| ()).await.unwrap() {
            Verdict::Proven(_) => assert_eq!(granted, Some(limit), "version {version}"),
            Verdict::Broken(finding) => {
                assert_ne!(granted, Some(limit), "version {version}: {finding}");
                assert!(matches!(finding.breach, Breach::LimitNotGranted { .. }), "{finding}");
            }
        }
    }
}

#[tokio::test]
async fn a_group_that_was_restored_under_a_smaller_plan_is_proven() {
    let (_place, ledger) = ledger().await;
    let mut story = Story::devices("ann");
    story.pool = PoolId::new(PoolKind::Group, tenant(), "0193d2f4-0007-8000-8abc-0123456789ab");
    (story.limit, story.version) = (4, 4);
    let (_, host) = story.admit("tv");
    (story.limit, story.version) = (2, 2);
    let (_, guest) = story.admit("tablet");
    let (_, third) = story.admit("phone");
    ledger.apply(&[host, guest]).await.unwrap();
    let verdict = ledger.verify(|_| ()).await.unwrap();
    assert!(matches!(verdict, Verdict::Proven(_)), "{verdict:?}");

    ledger.apply(&[third]).await.unwrap();
    let Verdict::Broken(finding) = ledger.verify(|_| ()).await.unwrap() else {
        panic!("three members of two")
    };
    assert_eq!(finding.breach, Breach::AboveLimit { live: 3, limit: 2 });
}
