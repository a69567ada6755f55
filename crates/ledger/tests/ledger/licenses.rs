//! Licenses are created, changed, looked up and listed.

use seatkeeper_core::{Seats, Span, Standing, TenantId};
use seatkeeper_ledger::audit::{Action, AuditFilter, AuditRecord};
use seatkeeper_ledger::licenses::{
    Clients, CountPer, License, LicenseChange, LicenseKey, NewLicense, Reacquire, Status,
};
use seatkeeper_ledger::{Effect, Error, Idempotency, Ledger, Write};

use crate::story::{START, Story, admin, by, ledger, licensed, new_license, subscribed, tenant};

async fn records(ledger: &Ledger) -> Vec<AuditRecord> {
    let mut page = ledger.audit(&tenant(), &AuditFilter::default(), None, 100).await.unwrap().items;
    page.reverse();
    page
}

fn seats(seats: u32) -> LicenseChange {
    LicenseChange { max_seats: Some(Seats(seats)), ..LicenseChange::default() }
}

#[tokio::test]
async fn a_new_license_is_found_by_id_and_by_key_and_stands_on_record() {
    let (_place, ledger) = ledger().await;
    let new = NewLicense {
        expires_at: Some(START + Span::from_secs(86_400)),
        count_per: CountPer::Process,
        clients: Clients::Key,
        ttl_seconds: Some(2),
        grace_seconds: 604_800,
        reacquire: Reacquire::Never,
        contact: Some("sales@example.com".to_owned()),
        ..new_license("ABCD-EFGH-IJKL-MNOP", 3)
    };
    let made = ledger.create_license(new, by(&admin())).await.unwrap();
    assert_eq!((made.effect, made.value.version), (Effect::Changed, 1));

    let by_id = ledger.license(&tenant(), made.value.id).await.unwrap();
    let by_key = ledger.license_by_key(&tenant(), &made.value.key).await.unwrap();
    assert_eq!(by_id.as_ref(), Some(&made.value));
    assert_eq!(by_key, by_id);

    let terms = made.value.terms(Span::from_secs(360));
    assert_eq!((terms.version, terms.limit, terms.ttl), (1, Seats(3), Span::from_secs(2)));
    assert_eq!((terms.ends_at, terms.standing), (made.value.expires_at, Standing::Open));

    let [record] = &records(&ledger).await[..] else { panic!("one record") };
    assert_eq!((record.action, record.seq, record.limit), (Action::LicenseCreated, 1, 3));
    assert_eq!((record.actor.as_str(), record.request.as_deref()), ("admin:joe", Some("req-1")));
    assert_eq!(record.pool, made.value.pool());
}

#[tokio::test]
async fn a_record_never_tells_a_license_key() {
    let (_place, ledger) = ledger().await;
    let license =
        ledger.create_license(new_license("ABCD-EFGH-IJKL-MNOP", 3), by(&admin())).await.unwrap().value;
    ledger.update_license(&tenant(), license.id, &seats(5), by(&admin())).await.unwrap();
    for record in records(&ledger).await {
        let told = format!("{record:?}");
        assert!(told.contains("MNOP") && !told.contains("IJKL"), "{told}");
    }
}

#[tokio::test]
async fn another_tenants_license_looks_missing_and_its_key_is_free() {
    let (_place, ledger) = ledger().await;
    let license = licensed(&ledger, 3).await;
    let other = TenantId::from("globex");
    assert_eq!(ledger.license(&other, license.id).await.unwrap(), None);
    assert_eq!(ledger.license_by_key(&other, &license.key).await.unwrap(), None);
    let update = ledger.update_license(&other, license.id, &seats(9), by(&admin())).await;
    assert!(matches!(update, Err(Error::NotFound)), "{update:?}");

    let same_key = NewLicense { tenant: other, ..new_license(license.key.reveal(), 1) };
    ledger.create_license(same_key, by(&admin())).await.unwrap();
}

#[tokio::test]
async fn a_tenant_has_each_key_once() {
    let (_place, ledger) = ledger().await;
    ledger.create_license(new_license("KEY", 1), by(&admin())).await.unwrap();
    let again = ledger.create_license(new_license("KEY", 2), by(&admin())).await;
    assert!(matches!(again, Err(Error::DuplicateKey)), "{again:?}");
    assert_eq!(records(&ledger).await.len(), 1);
}

#[tokio::test]
async fn a_change_raises_the_version_once_and_none_when_it_changes_nothing() {
    let (_place, ledger) = ledger().await;
    let license = licensed(&ledger, 3).await;
    let change = LicenseChange {
        status: Some(Status::Suspended),
        clients: Some(Clients::Key),
        ttl_seconds: Some(Some(9)),
        grace_seconds: Some(60),
        reacquire: Some(Reacquire::Never),
        contact: Some(Some("ops".to_owned())),
        ..seats(5)
    };
    let update = async || ledger.update_license(&tenant(), license.id, &change, by(&admin())).await;
    let (first, second) = (update().await.unwrap(), update().await.unwrap());
    assert_eq!((first.effect, first.value.version), (Effect::Changed, 2));
    assert_eq!((second.effect, &second.value), (Effect::Unchanged, &first.value));
    assert_eq!(first.value.terms(Span::ZERO).standing, Standing::Closed);
    assert_eq!(ledger.license(&tenant(), license.id).await.unwrap().as_ref(), Some(&first.value));
    assert_eq!(records(&ledger).await.len(), 2);

    let cleared = LicenseChange { contact: Some(None), ttl_seconds: Some(None), ..LicenseChange::default() };
    let origin = admin();
    let write = Write { expected_version: Some(2), ..by(&origin) };
    let written = ledger.update_license(&tenant(), license.id, &cleared, write).await.unwrap();
    assert_eq!((written.value.contact, written.value.ttl_seconds), (None, None));
}

#[tokio::test]
async fn a_change_meant_for_another_version_is_refused() {
    let (_place, ledger) = ledger().await;
    let license = licensed(&ledger, 3).await;
    let origin = admin();
    let write = Write { expected_version: Some(7), ..by(&origin) };
    let stale = ledger.update_license(&tenant(), license.id, &seats(5), write).await;
    assert!(matches!(stale, Err(Error::VersionConflict { current: 1 })), "{stale:?}");
    let seats_now = ledger.license(&tenant(), license.id).await.unwrap().unwrap().max_seats;
    assert_eq!(seats_now, Seats(3));
    let same = ledger.update_license(&tenant(), license.id, &seats(3), write).await.unwrap();
    assert_eq!(same.effect, Effect::Unchanged, "a repeat finds its own change done");
}

#[tokio::test]
async fn a_retry_under_an_idempotency_key_is_answered_as_the_first_time() {
    let (_place, ledger) = ledger().await;
    let origin = admin();
    let idempotency = |key: &str, hash: u8| Idempotency { key: key.to_owned(), request_hash: vec![hash; 32] };
    let create = idempotency("create", 1);
    let write = Write { idempotency: Some(&create), ..by(&origin) };
    let first = ledger.create_license(new_license("KEY", 3), write).await.unwrap().value;
    ledger.update_license(&tenant(), first.id, &seats(5), by(&origin)).await.unwrap();

    let again = ledger.create_license(new_license("KEY", 3), write).await.unwrap();
    assert_eq!((again.effect, &again.value), (Effect::Replayed, &first));

    let update = idempotency("update", 2);
    let write = Write { idempotency: Some(&update), expected_version: Some(2), ..by(&origin) };
    let raise = async || ledger.update_license(&tenant(), first.id, &seats(8), write).await;
    assert_eq!(raise().await.unwrap().effect, Effect::Changed);
    assert_eq!(raise().await.unwrap().effect, Effect::Replayed);

    let reused = idempotency("create", 9);
    let write = Write { idempotency: Some(&reused), ..by(&origin) };
    let mismatch = ledger.create_license(new_license("OTHER", 3), write).await;
    assert!(matches!(mismatch, Err(Error::IdempotencyMismatch)), "{mismatch:?}");
    assert_eq!(records(&ledger).await.len(), 3);
}

#[tokio::test]
async fn licenses_are_listed_in_pages_by_status() {
    let (_place, ledger) = ledger().await;
    let (origin, mut made) = (admin(), Vec::new());
    for n in 0..5_u64 {
        let new = NewLicense {
            status: if n == 2 { Status::Revoked } else { Status::Active },
            ..new_license(&format!("KEY-{n}"), 1)
        };
        let write = Write { at: START + Span::from_secs(n), ..by(&origin) };
        made.push(ledger.create_license(new, write).await.unwrap().value.key);
    }
    let list = async |status, cursor| ledger.list_licenses(&tenant(), status, cursor, 2).await.unwrap();
    let mut seen: Vec<LicenseKey> = Vec::new();
    let mut cursor = None;
    loop {
        let page = list(None, cursor).await;
        seen.extend(page.items.into_iter().map(|license| license.key));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, made);
    let revoked = list(Some(Status::Revoked), None).await;
    assert_eq!((revoked.items.len(), revoked.next), (1, None));
    let foreign = ledger.list_licenses(&TenantId::from("globex"), None, None, 10).await.unwrap();
    assert_eq!(foreign.items, []);
}

#[tokio::test]
async fn entitlements_that_changed_in_a_time_are_told_in_pages() {
    let (_place, ledger) = ledger().await;
    let mut pools: Vec<_> =
        [licensed(&ledger, 1).await, licensed(&ledger, 2).await].iter().map(License::pool).collect();
    subscribed(&ledger, "ann", "basic").await;
    pools.push(Story::devices("ann").pool);
    let mut story = Story::new(&licensed(&ledger, 1).await);
    pools.push(story.pool.clone());
    ledger.apply(&[story.admit("one").1]).await.unwrap();
    pools.sort_by_key(|pool| (pool.kind.as_str(), pool.name.clone()));

    let later = START + Span::from_secs(1);
    let mut told = Vec::new();
    while let page = ledger.entitlements_changed(START..later, told.last(), 3).await.unwrap()
        && !page.is_empty()
    {
        assert!(page.len() <= 3);
        told.extend(page);
    }
    assert_eq!(told, pools);
    let none = ledger.entitlements_changed(later..later + Span::from_secs(9), None, 9).await.unwrap();
    assert_eq!(none, []);
}
