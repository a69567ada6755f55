//! Subscriptions are created, changed, looked up and listed.

use seatkeeper_core::{RegistryTime, Span, TenantId, UserId};
use seatkeeper_ledger::audit::{Action, AuditFilter, AuditRecord, Stream};
use seatkeeper_ledger::plans::{PlanChange, PlanStatus};
use seatkeeper_ledger::subscriptions::{
    NewSubscription, Subscription, SubscriptionChange, SubscriptionFilter, SubscriptionId, SubscriptionStatus,
};
use seatkeeper_ledger::{Effect, Error, Idempotency, Ledger, Write, Written};

use crate::story::{START, admin, by, ledger, named, new_subscription, planned, subscribed, tenant};

fn later(seconds: u64) -> RegistryTime {
    START + Span::from_secs(seconds)
}

fn cancel() -> SubscriptionChange {
    SubscriptionChange { cancel: true, ..SubscriptionChange::default() }
}

async fn update(
    ledger: &Ledger,
    id: SubscriptionId,
    change: &SubscriptionChange,
    at: RegistryTime,
) -> Result<Written<Subscription>, Error> {
    let origin = admin();
    ledger.update_subscription(&tenant(), id, change, Write { at, ..by(&origin) }).await
}

async fn retire(ledger: &Ledger, plan: &str) {
    let change = PlanChange { status: Some(PlanStatus::Retired), ..PlanChange::default() };
    ledger.update_plan(&tenant(), &named(plan), change, by(&admin())).await.unwrap();
}

/// Returns the records of subscriptions, oldest first.
async fn records(ledger: &Ledger) -> Vec<AuditRecord> {
    let mut page = ledger.audit(&tenant(), &AuditFilter::default(), None, 100).await.unwrap().items;
    page.retain(|record| record.stream == Stream::Entitlement);
    page.reverse();
    page
}

fn told(records: &[AuditRecord]) -> Vec<(&str, u64, Action, u32)> {
    records.iter().map(|record| (&*record.pool.name, record.seq, record.action, record.limit)).collect()
}

#[tokio::test]
async fn a_change_meant_for_another_version_is_refused() {
    let (_place, ledger) = ledger().await;
    let (origin, made) = (admin(), subscribed(&ledger, "ann", "basic").await);
    let change = async |plan: &str, version| {
        let change = SubscriptionChange { plan: Some(named(plan)), ..SubscriptionChange::default() };
        let write = Write { expected_version: Some(version), ..by(&origin) };
        ledger.update_subscription(&tenant(), made.id, &change, write).await
    };
    let first = change("standard", made.version).await.unwrap().value.version;
    let stale = change("premium", made.version).await;
    assert!(matches!(stale, Err(Error::VersionConflict { current }) if current == first), "{stale:?}");
    assert_eq!(change("standard", made.version).await.unwrap().effect, Effect::Unchanged);
    assert_eq!(change("premium", first).await.unwrap().effect, Effect::Changed);
}

#[tokio::test]
async fn a_new_subscription_is_found_and_stands_on_record() {
    let (_place, ledger) = ledger().await;
    let made = subscribed(&ledger, "ann", "premium").await;
    assert_eq!((made.starts_at, made.ends_at, made.status), (START, None, SubscriptionStatus::Active));
    assert_eq!(ledger.subscription(&tenant(), made.id).await.unwrap(), Some(made.clone()));

    let records = records(&ledger).await;
    assert_eq!(told(&records), [("ann", 1, Action::SubscriptionCreated, 4)]);
    assert_eq!((records[0].version, records[0].actor.as_str()), (made.version, "admin:joe"));
    assert_eq!(records[0].pool, made.pool());
    let detail = records[0].detail.as_deref().unwrap();
    assert!(detail.contains(r#""user":"ann","plan":"premium","status":"active""#), "{detail}");
}

#[tokio::test]
async fn one_that_starts_later_grants_one_seat_until_then() {
    let (_place, ledger) = ledger().await;
    let new = NewSubscription { starts_at: Some(later(60)), ..new_subscription("ann", "premium") };
    ledger.create_subscription(new, by(&admin())).await.unwrap();
    assert_eq!(told(&records(&ledger).await), [("ann", 1, Action::SubscriptionCreated, 1)]);
}

#[tokio::test]
async fn a_user_has_one_active_subscription_at_a_time() {
    let (_place, ledger) = ledger().await;
    let first = subscribed(&ledger, "ann", "basic").await;
    let again = ledger.create_subscription(new_subscription("ann", "premium"), by(&admin())).await;
    assert!(matches!(again, Err(Error::SubscriptionExists)), "{again:?}");
    subscribed(&ledger, "bob", "basic").await;
    let elsewhere = NewSubscription { tenant: TenantId::from("globex"), ..new_subscription("ann", "basic") };
    ledger.create_subscription(elsewhere, by(&admin())).await.unwrap();

    let cancelled = update(&ledger, first.id, &cancel(), START).await.unwrap().value;
    assert_eq!(cancelled.status, SubscriptionStatus::Cancelled);
    subscribed(&ledger, "ann", "premium").await;
    assert_eq!(
        told(&records(&ledger).await),
        [
            ("ann", 1, Action::SubscriptionCreated, 1),
            ("bob", 1, Action::SubscriptionCreated, 1),
            ("ann", 2, Action::SubscriptionUpdated, 1),
            ("ann", 3, Action::SubscriptionCreated, 4),
        ]
    );
}

#[tokio::test]
async fn the_one_that_is_past_its_date_is_noted_as_expired_when_the_next_is_made() {
    let (_place, ledger) = ledger().await;
    let new = NewSubscription { ends_at: Some(later(60)), ..new_subscription("ann", "premium") };
    let first = ledger.create_subscription(new, by(&admin())).await.unwrap().value;
    let origin = admin();
    let write = |at| Write { at, ..by(&origin) };
    let early = ledger.create_subscription(new_subscription("ann", "basic"), write(later(59))).await;
    assert!(matches!(early, Err(Error::SubscriptionExists)), "{early:?}");

    let second =
        ledger.create_subscription(new_subscription("ann", "basic"), write(later(60))).await.unwrap().value;
    let first = ledger.subscription(&tenant(), first.id).await.unwrap().unwrap();
    assert_eq!(first.status, SubscriptionStatus::Expired);
    assert!(second.version > first.version);
    assert_eq!(
        told(&records(&ledger).await),
        [
            ("ann", 1, Action::SubscriptionCreated, 4),
            ("ann", 2, Action::SubscriptionUpdated, 1),
            ("ann", 3, Action::SubscriptionCreated, 1),
        ]
    );
}

#[tokio::test]
async fn one_that_is_over_stays_as_it_is() {
    let (_place, ledger) = ledger().await;
    let new = NewSubscription { ends_at: Some(later(60)), ..new_subscription("ann", "basic") };
    let expires = ledger.create_subscription(new, by(&admin())).await.unwrap().value;
    let cancelled = subscribed(&ledger, "bob", "basic").await;
    update(&ledger, cancelled.id, &cancel(), START).await.unwrap();

    let longer = SubscriptionChange { ends_at: Some(None), ..SubscriptionChange::default() };
    let other_plan = SubscriptionChange { plan: Some(named("premium")), ..SubscriptionChange::default() };
    for (id, change) in [
        (expires.id, &longer),
        (expires.id, &cancel()),
        (expires.id, &other_plan),
        (cancelled.id, &other_plan),
    ] {
        let refused = update(&ledger, id, change, later(60)).await;
        assert!(matches!(refused, Err(Error::SubscriptionOver)), "{refused:?}");
    }
    let again = update(&ledger, cancelled.id, &cancel(), later(60)).await.unwrap();
    assert_eq!(again.effect, Effect::Unchanged);
    assert_eq!(records(&ledger).await.len(), 3);
    // A subscription not yet over can be extended.
    let extended = update(&ledger, expires.id, &longer, later(59)).await.unwrap().value;
    assert_eq!((extended.ends_at, extended.updated_at), (None, later(59)));
}

#[tokio::test]
async fn a_subscription_ends_after_it_starts() {
    let (_place, ledger) = ledger().await;
    for (starts_at, ends_at) in [(None, START), (Some(later(60)), later(60)), (Some(later(60)), later(59))] {
        let new = NewSubscription { starts_at, ends_at: Some(ends_at), ..new_subscription("ann", "basic") };
        let refused = ledger.create_subscription(new, by(&admin())).await;
        assert!(matches!(refused, Err(Error::EndsBeforeStart)), "{refused:?}");
    }
    let made = subscribed(&ledger, "ann", "basic").await;
    let ends = SubscriptionChange { ends_at: Some(Some(START)), ..SubscriptionChange::default() };
    let refused = update(&ledger, made.id, &ends, START).await;
    assert!(matches!(refused, Err(Error::EndsBeforeStart)), "{refused:?}");
    assert_eq!(records(&ledger).await.len(), 1);
}

#[tokio::test]
async fn no_subscription_is_created_or_changed_to_lie_in_the_past() {
    let (_place, ledger) = ledger().await;
    let at = later(100);
    let origin = admin();
    for ends_at in [later(50), at] {
        let (starts_at, ends_at) = (Some(START), Some(ends_at));
        let new = NewSubscription { starts_at, ends_at, ..new_subscription("ann", "basic") };
        let refused = ledger.create_subscription(new, Write { at, ..by(&origin) }).await;
        assert!(matches!(refused, Err(Error::EndsInThePast)), "{refused:?}");
    }
    assert_eq!(records(&ledger).await.len(), 0);
    let ends_at = Some(at + Span::from_millis(1));
    let new = NewSubscription { starts_at: Some(START), ends_at, ..new_subscription("ann", "basic") };
    let made = ledger.create_subscription(new, Write { at, ..by(&origin) }).await.unwrap().value;
    let ends = SubscriptionChange { ends_at: Some(Some(at)), ..SubscriptionChange::default() };
    let refused = update(&ledger, made.id, &ends, at).await;
    assert!(matches!(refused, Err(Error::EndsInThePast)), "{refused:?}");
}

#[tokio::test]
async fn a_retired_plan_takes_no_new_subscription_and_who_has_it_keeps_it() {
    let (_place, ledger) = ledger().await;
    planned(&ledger, "family", 6).await;
    let keeps = subscribed(&ledger, "ann", "family").await;
    let other = subscribed(&ledger, "bob", "basic").await;
    retire(&ledger, "family").await;

    let new = ledger.create_subscription(new_subscription("joe", "family"), by(&admin())).await;
    assert!(matches!(new, Err(Error::PlanRetired)), "{new:?}");
    let to_family = SubscriptionChange { plan: Some(named("family")), ..SubscriptionChange::default() };
    let changed = update(&ledger, other.id, &to_family, START).await;
    assert!(matches!(changed, Err(Error::PlanRetired)), "{changed:?}");

    let longer = SubscriptionChange { ends_at: Some(Some(later(9))), ..to_family };
    assert_eq!(update(&ledger, keeps.id, &longer, START).await.unwrap().effect, Effect::Changed);
    let unknown = ledger.create_subscription(new_subscription("joe", "gold"), by(&admin())).await;
    assert!(matches!(unknown, Err(Error::UnknownPlan)), "{unknown:?}");
}

#[tokio::test]
async fn another_tenants_subscription_looks_missing() {
    let (_place, ledger) = ledger().await;
    let made = subscribed(&ledger, "ann", "basic").await;
    let other = TenantId::from("globex");
    assert_eq!(ledger.subscription(&other, made.id).await.unwrap(), None);
    let refused = ledger.update_subscription(&other, made.id, &cancel(), by(&admin())).await;
    assert!(matches!(refused, Err(Error::NotFound)), "{refused:?}");
}

#[tokio::test]
async fn a_retry_under_an_idempotency_key_is_answered_as_the_first_time() {
    let (_place, ledger) = ledger().await;
    let origin = admin();
    let idempotency = Idempotency { key: "once".to_owned(), request_hash: vec![1; 32] };
    let write = Write { idempotency: Some(&idempotency), ..by(&origin) };
    let new = || NewSubscription { ends_at: Some(later(60)), ..new_subscription("ann", "basic") };
    let first = ledger.create_subscription(new(), write).await.unwrap().value;
    update(&ledger, first.id, &cancel(), START).await.unwrap();
    let again = ledger.create_subscription(new(), write).await.unwrap();
    assert_eq!((again.effect, again.value), (Effect::Replayed, first));
    assert_eq!(records(&ledger).await.len(), 2);
}

#[tokio::test]
async fn subscriptions_are_listed_in_pages_by_user_plan_and_status() {
    let (_place, ledger) = ledger().await;
    let (origin, mut made) = (admin(), Vec::new());
    for (n, (user, plan, ends)) in
        [("ann", "basic", None), ("bob", "premium", Some(60)), ("joe", "premium", None)]
            .into_iter()
            .enumerate()
    {
        let new = NewSubscription { ends_at: ends.map(later), ..new_subscription(user, plan) };
        let write = Write { at: START + Span::from_millis(n as u64), ..by(&origin) };
        made.push(ledger.create_subscription(new, write).await.unwrap().value.id);
    }
    update(&ledger, made[2], &cancel(), later(1)).await.unwrap();
    let at = async |filter: SubscriptionFilter, now| {
        let page = ledger.list_subscriptions(&tenant(), &filter, now, None, 10).await.unwrap();
        page.items.iter().map(|subscription| subscription.id).collect::<Vec<_>>()
    };
    let status = |status| SubscriptionFilter { status: Some(status), ..SubscriptionFilter::default() };
    assert_eq!(at(SubscriptionFilter::default(), START).await, made);
    assert_eq!(at(status(SubscriptionStatus::Active), later(59)).await, made[..2]);
    assert_eq!(at(status(SubscriptionStatus::Active), later(60)).await, made[..1]);
    assert_eq!(at(status(SubscriptionStatus::Expired), later(59)).await, []);
    assert_eq!(at(status(SubscriptionStatus::Expired), later(60)).await, made[1..2]);
    assert_eq!(at(status(SubscriptionStatus::Cancelled), later(60)).await, made[2..]);
    let premium = SubscriptionFilter { plan: Some(named("premium")), ..SubscriptionFilter::default() };
    assert_eq!(at(premium.clone(), START).await, made[1..]);
    assert_eq!(at(SubscriptionFilter { user: Some(UserId::from("joe")), ..premium }, START).await, made[2..]);

    let page = async |cursor| {
        let everything = SubscriptionFilter::default();
        ledger.list_subscriptions(&tenant(), &everything, START, cursor, 2).await.unwrap()
    };
    let first = page(None).await;
    let second = page(first.next).await;
    assert_eq!((first.items.len(), second.items[0].id, second.next), (2, made[2], None));
    let other = TenantId::from("globex");
    let foreign = ledger.list_subscriptions(&other, &SubscriptionFilter::default(), START, None, 9).await;
    assert_eq!(foreign.unwrap().items, []);
}
