//! Plans are built in, created, changed, looked up and listed.

use seatkeeper_core::{PoolKind, Seats, TenantId, WhenFull};
use seatkeeper_ledger::audit::{Action, AuditFilter, AuditRecord, Stream};
use seatkeeper_ledger::plans::{NewPlan, Plan, PlanChange, PlanStatus};
use seatkeeper_ledger::{Effect, Error, Idempotency, Ledger, Write};

use crate::story::{
    START, admin, by, ledger, licensed, named, new_license, new_plan, planned, subscribed, tenant,
};

async fn list(ledger: &Ledger, tenant: &TenantId) -> Vec<Plan> {
    ledger.list_plans(tenant, None, START, None, 100).await.unwrap().items
}

fn devices(devices: u32) -> PlanChange {
    PlanChange { device_limit: Some(Seats(devices)), ..PlanChange::default() }
}

async fn update(ledger: &Ledger, plan: &str, change: PlanChange) -> Plan {
    ledger.update_plan(&tenant(), &named(plan), change, by(&admin())).await.unwrap().value
}

/// Returns the records of plans, oldest first.
async fn records(ledger: &Ledger) -> Vec<AuditRecord> {
    let mut page = ledger.audit(&tenant(), &AuditFilter::default(), None, 100).await.unwrap().items;
    page.retain(|record| record.stream == Stream::Plan);
    page.reverse();
    page
}

#[tokio::test]
async fn every_tenant_has_the_built_in_plans_without_anybody_making_them() {
    let (_place, ledger) = ledger().await;
    licensed(&ledger, 1).await;
    for name in ["acme", "globex", "globex"] {
        let plans = list(&ledger, &TenantId::from(name)).await;
        let told: Vec<_> = plans
            .iter()
            .map(|plan| (plan.name.as_str(), plan.device_limit.0, plan.version, plan.status, plan.when_full))
            .collect();
        assert_eq!(
            told,
            [
                ("basic", 1, 0, PlanStatus::Active, WhenFull::Evict),
                ("premium", 4, 0, PlanStatus::Active, WhenFull::Evict),
                ("standard", 2, 0, PlanStatus::Active, WhenFull::Evict)
            ]
        );
    }
    let unseen = TenantId::from("initech");
    assert_eq!(ledger.plan(&unseen, &named("family"), START).await.unwrap(), None);
    let premium = ledger.plan(&unseen, &named("premium"), START).await.unwrap().unwrap();
    assert_eq!((premium.device_limit, premium.tenant), (Seats(4), unseen));
}

#[tokio::test]
async fn a_new_plan_is_found_and_stands_on_record() {
    let (_place, ledger) = ledger().await;
    let new = NewPlan { when_full: WhenFull::Deny, ttl_seconds: Some(60), ..new_plan("family", 6) };
    let made = ledger.create_plan(new, by(&admin())).await.unwrap();
    assert_eq!((made.effect, made.value.version), (Effect::Changed, 1));
    assert_eq!(ledger.plan(&tenant(), &named("family"), START).await.unwrap(), Some(made.value.clone()));
    assert_eq!(list(&ledger, &tenant()).await.len(), 4);
    assert_eq!(list(&ledger, &TenantId::from("globex")).await.len(), 3);

    let [record] = &records(&ledger).await[..] else { panic!("one record") };
    assert_eq!((record.action, record.seq, record.limit, record.version), (Action::PlanCreated, 1, 6, 1));
    assert_eq!((record.pool.kind, &*record.pool.name), (PoolKind::Subscriber, "family"));
    assert_eq!(record.actor, "admin:joe");
    let detail = record.detail.as_deref().unwrap();
    assert!(detail.contains(r#""when_full":"deny","ttl_seconds":60"#), "{detail}");
}

#[tokio::test]
async fn a_tenant_has_each_name_once() {
    let (_place, ledger) = ledger().await;
    planned(&ledger, "family", 6).await;
    for name in ["family", "basic"] {
        let again = ledger.create_plan(new_plan(name, 2), by(&admin())).await;
        assert!(matches!(again, Err(Error::DuplicatePlan)), "{again:?}");
    }
    let elsewhere = NewPlan { tenant: TenantId::from("globex"), ..new_plan("family", 6) };
    ledger.create_plan(elsewhere, by(&admin())).await.unwrap();
    assert_eq!(records(&ledger).await.len(), 1);
}

#[tokio::test]
async fn each_change_of_a_tenants_plans_and_subscriptions_has_the_next_version_and_each_plan_its_own_numbers()
{
    let (_place, ledger) = ledger().await;
    assert_eq!(planned(&ledger, "family", 6).await.version, 1);
    assert_eq!(update(&ledger, "basic", devices(2)).await.version, 2);
    let subscription = subscribed(&ledger, "ann", "family").await;
    assert!(subscription.version > 2, "{subscription:?}");
    let family =
        update(&ledger, "family", PlanChange { status: Some(PlanStatus::Retired), ..devices(5) }).await;
    assert!(family.version > subscription.version, "{family:?}");
    assert_eq!((family.device_limit, family.status), (Seats(5), PlanStatus::Retired));

    let told: Vec<_> = records(&ledger)
        .await
        .iter()
        .map(|record| (record.pool.name.to_string(), record.seq, record.action, record.limit))
        .collect();
    assert_eq!(
        told,
        [
            ("family".to_owned(), 1, Action::PlanCreated, 6),
            ("basic".to_owned(), 1, Action::PlanUpdated, 2),
            ("family".to_owned(), 2, Action::PlanUpdated, 5),
        ]
    );
}

#[tokio::test]
async fn a_change_that_changes_nothing_leaves_the_version_and_the_record() {
    let (_place, ledger) = ledger().await;
    let plan = planned(&ledger, "family", 6).await;
    let same = PlanChange { price_cents: Some(999), ttl_seconds: Some(None), ..devices(6) };
    let written = ledger.update_plan(&tenant(), &plan.name, same, by(&admin())).await.unwrap();
    assert_eq!((written.effect, written.value), (Effect::Unchanged, plan));
    assert_eq!(records(&ledger).await.len(), 1);
}

#[tokio::test]
async fn another_tenants_plan_looks_missing() {
    let (_place, ledger) = ledger().await;
    planned(&ledger, "family", 6).await;
    let other = TenantId::from("globex");
    assert_eq!(ledger.plan(&other, &named("family"), START).await.unwrap(), None);
    let update = ledger.update_plan(&other, &named("family"), devices(9), by(&admin())).await;
    assert!(matches!(update, Err(Error::NotFound)), "{update:?}");
}

#[tokio::test]
async fn plans_are_listed_in_pages_by_status() {
    let (_place, ledger) = ledger().await;
    update(&ledger, "premium", PlanChange { status: Some(PlanStatus::Retired), ..PlanChange::default() })
        .await;
    let page = async |status, cursor| {
        let page = ledger.list_plans(&tenant(), status, START, cursor, 1).await.unwrap();
        (page.items[0].name.to_string(), page.next)
    };
    let (first, next) = page(Some(PlanStatus::Active), None).await;
    let (second, end) = page(Some(PlanStatus::Active), next.as_ref()).await;
    assert_eq!((first.as_str(), second.as_str(), end), ("basic", "standard", None));
    assert_eq!(page(Some(PlanStatus::Retired), None).await, ("premium".to_owned(), None));
}

#[tokio::test]
async fn a_change_meant_for_another_version_is_refused() {
    let (_place, ledger) = ledger().await;
    let origin = admin();
    let at = |version| Write { expected_version: Some(version), ..by(&origin) };
    let change = async |limit, version| {
        ledger.update_plan(&tenant(), &named("basic"), devices(limit), at(version)).await
    };
    let first = change(2, 0).await.unwrap().value.version;
    let stale = change(3, 0).await;
    assert!(matches!(stale, Err(Error::VersionConflict { current }) if current == first), "{stale:?}");
    assert_eq!(change(2, 0).await.unwrap().effect, Effect::Unchanged);
    assert_eq!(change(3, first).await.unwrap().effect, Effect::Changed);
}

#[tokio::test]
async fn a_retry_under_an_idempotency_key_is_answered_as_the_first_time() {
    let (_place, ledger) = ledger().await;
    let origin = admin();
    let idempotency = Idempotency { key: "once".to_owned(), request_hash: vec![1; 32] };
    let write = Write { idempotency: Some(&idempotency), ..by(&origin) };
    let first = ledger.create_plan(new_plan("family", 6), write).await.unwrap().value;
    update(&ledger, "family", devices(9)).await;
    let again = ledger.create_plan(new_plan("family", 6), write).await.unwrap();
    assert_eq!((again.effect, again.value), (Effect::Replayed, first));

    // A key is valid for one request only, across all kinds of entities.
    let license = ledger.create_license(new_license("KEY", 1), write).await;
    assert!(matches!(license, Err(Error::IdempotencyMismatch)), "{license:?}");
    let other = Idempotency { request_hash: vec![2; 32], ..idempotency.clone() };
    let write = Write { idempotency: Some(&other), ..by(&origin) };
    let mismatch = ledger.update_plan(&tenant(), &named("family"), devices(9), write).await;
    assert!(matches!(mismatch, Err(Error::IdempotencyMismatch)), "{mismatch:?}");
}
