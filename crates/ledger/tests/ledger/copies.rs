//! A copy of the ledger lacks the latest changes of entitlements, and gets events by the lost terms: `audit verify` names the
//! loss, and a change made in the copy has newer terms.

use std::time::Duration;

use seatkeeper_core::{Bucket, Event, Seats, Span, epoch_after};
use seatkeeper_ledger::buckets::{BucketMode, EpochRaise};
use seatkeeper_ledger::licenses::{License, LicenseChange};
use seatkeeper_ledger::plans::PlanChange;
use seatkeeper_ledger::subscriptions::SubscriptionChange;
use seatkeeper_ledger::verify::{Breach, LostTerms, Verdict};
use seatkeeper_ledger::{Ledger, Write};

use crate::place::TestLedger;
use crate::story::{
    EPOCH, START, Story, admin, by, ledger, licensed, named, planned, raiser, subscribed, tenant,
};

const MINUTE: Span = Span::from_secs(60);
const FIVE_MINUTES: Span = Span::from_secs(300);

/// The version of the first change at [`START`] in a copy.
const FIRST_OF_COPY: u64 = START.as_millis();

/// The lowest distance of the first versions of two copies on record.
const VERSIONS_OF_COPY: u64 = 1 << 20;

/// Returns the breach found in the log; `Err` with the lost terms if the log is proven.
async fn breach(ledger: &Ledger) -> Result<Breach, Vec<LostTerms>> {
    match ledger.verify(|_| ()).await.unwrap() {
        Verdict::Broken(finding) => Ok(finding.breach),
        Verdict::Proven(proof) => Err(proof.lost_terms),
    }
}

async fn raises(ledger: &Ledger, number: u16) {
    let raise = EpochRaise { bucket: Bucket::new(number).unwrap(), seen: EPOCH, next: EPOCH + 1 };
    ledger.raise(raiser(ledger).await, &[raise], BucketMode::Registry, None).await.unwrap();
}

async fn copies(place: &TestLedger) -> i64 {
    let count = sqlx::query_scalar("SELECT COUNT(*) FROM ledger_copies");
    count.fetch_one(&mut place.connect().await).await.unwrap()
}

/// Makes the ledger a copy of another ledger.
async fn becomes_a_copy(place: &TestLedger) {
    let elsewhere = "UPDATE buckets SET ledger_identity = 'elsewhere'";
    sqlx::query(elsewhere).execute(&mut place.connect().await).await.unwrap();
}

async fn resized(ledger: &Ledger, license: &License, seats: u32) -> License {
    let change = LicenseChange { max_seats: Some(Seats(seats)), ..LicenseChange::default() };
    ledger.update_license(&tenant(), license.id, &change, by(&admin())).await.unwrap().value
}

#[tokio::test]
async fn a_raise_in_another_ledger_notes_a_copy_once() {
    let (place, ledger) = ledger().await;
    raises(&ledger, 1).await;
    assert_eq!(copies(&place).await, 0, "the first ledger is no copy");
    becomes_a_copy(&place).await;
    raises(&ledger, 2).await;
    raises(&ledger, 3).await;
    assert_eq!(copies(&place).await, 1);
}

#[tokio::test]
async fn admissions_by_a_license_that_a_copy_lost_are_named_however_late_and_the_rest_is_proven() {
    let (place, ledger) = ledger().await;
    let (_other_place, other) = crate::story::ledger().await;
    let license = licensed(&other, 3).await;
    let (mut lost, mut kept) = (Story::new(&license), Story::new(&licensed(&ledger, 3).await));
    ledger.apply(&[lost.admit("one").1, kept.admit("one").1]).await.unwrap();
    let not_granted = Breach::LimitNotGranted { limit: 3, version: 1, granted: None };
    assert_eq!(breach(&ledger).await, Ok(not_granted), "the ledger is no copy");

    becomes_a_copy(&place).await;
    let other_buckets =
        Bucket::all().filter(|bucket| ![lost.pool.bucket(), kept.pool.bucket()].contains(bucket));
    raises(&ledger, other_buckets.map(Bucket::number).next().unwrap()).await;
    let named = |admissions| vec![LostTerms { pool: license.pool(), version: 1, admissions }];
    assert_eq!(breach(&ledger).await, Err(named(1)));
    lost.pass(MINUTE);
    ledger.apply(&[lost.admit("two").1]).await.unwrap();
    lost.pass(FIVE_MINUTES);
    ledger.apply(&[lost.admit("three").1]).await.unwrap();
    assert_eq!(breach(&ledger).await, Err(named(3)));
}

#[tokio::test]
async fn the_start_of_a_process_that_uses_a_copy_alone_notes_the_copy() {
    let (place, ledger) = ledger().await;
    let license = licensed(&ledger, 2).await;
    let lost = 7;
    let mut story = Story::new(&License { version: lost, ..license.clone() });
    becomes_a_copy(&place).await;
    let sole_use = ledger.take_alone("memory:2", 0).await.unwrap();
    assert_eq!(copies(&place).await, 1);

    let by_lost_terms = Event { epoch: sole_use.epoch(), ..story.admit("one").1 };
    ledger.apply(&[by_lost_terms]).await.unwrap();
    let named = LostTerms { pool: license.pool(), version: lost, admissions: 1 };
    assert_eq!(breach(&ledger).await, Err(vec![named]));
    let floor = sqlx::query_scalar("SELECT version_floor FROM ledger_copies");
    let floor: i64 = floor.fetch_one(&mut place.connect().await).await.unwrap();
    assert_eq!(resized(&ledger, &license, 3).await.version, floor.unsigned_abs());
}

/// The change comes before the first raise of an epoch, and notes the copy.
#[tokio::test]
async fn a_change_in_a_copy_is_newer_than_every_change_that_the_copy_lost() {
    let (place, ledger) = ledger().await;
    let license = licensed(&ledger, 2).await;
    planned(&ledger, "family", 3).await;
    let subscription = subscribed(&ledger, "ann", "family").await;
    assert_eq!(resized(&ledger, &license, 3).await.version, 2);

    becomes_a_copy(&place).await;
    let again = resized(&ledger, &license, 4).await;
    assert_eq!((again.version, copies(&place).await), (FIRST_OF_COPY, 1));
    assert_eq!(resized(&ledger, &license, 5).await.version, FIRST_OF_COPY + 1);
    let limit = PlanChange { device_limit: Some(Seats(4)), ..PlanChange::default() };
    let plan = ledger.update_plan(&tenant(), &named("family"), limit, by(&admin())).await.unwrap().value;
    assert_eq!(plan.version, FIRST_OF_COPY);
    let basic = SubscriptionChange { plan: Some(named("basic")), ..SubscriptionChange::default() };
    let changed = ledger.update_subscription(&tenant(), subscription.id, &basic, by(&admin())).await.unwrap();
    assert_eq!(changed.value.version, FIRST_OF_COPY + 1);

    let mut seats = Story::new(&License { max_seats: Seats(5), version: FIRST_OF_COPY + 1, ..license });
    let mut devices = Story::of_subscriber(&ledger, "ann").await;
    assert!(devices.version > 4 * FIRST_OF_COPY);
    ledger.apply(&[seats.admit("one").1, devices.admit("tv").1]).await.unwrap();
    assert_eq!(breach(&ledger).await, Err(Vec::new()));
}

/// A restored backup knows nothing of the standby that was promoted after the backup.
#[tokio::test]
async fn a_change_in_a_restored_backup_is_newer_than_every_change_of_a_standby_promoted_before() {
    let (promoted_place, promoted) = ledger().await;
    let (restored_place, restored) = crate::story::ledger().await;
    let (lost, license) = (licensed(&promoted, 2).await, licensed(&restored, 2).await);
    becomes_a_copy(&promoted_place).await;
    resized(&promoted, &lost, 3).await;
    let lost = resized(&promoted, &lost, 4).await;
    becomes_a_copy(&restored_place).await;
    let origin = admin();
    let later = Write { at: START + MINUTE, ..by(&origin) };
    let change = LicenseChange { max_seats: Some(Seats(5)), ..LicenseChange::default() };
    let changed = restored.update_license(&tenant(), license.id, &change, later).await.unwrap().value;
    assert!(changed.version > lost.version, "{} and {}", changed.version, lost.version);
    assert_eq!(breach(&restored).await, Err(Vec::new()));
}

#[tokio::test]
async fn a_copy_with_a_clock_behind_that_of_the_last_copy_has_higher_versions_all_the_same() {
    let (place, ledger) = ledger().await;
    let license = licensed(&ledger, 2).await;
    becomes_a_copy(&place).await;
    let before = "INSERT INTO ledger_copies (identity, noted_at, version_floor)
                  SELECT 'before', created_at, $1 FROM licenses";
    let last = FIRST_OF_COPY + 60_000;
    sqlx::query(before).bind(i64::try_from(last).unwrap()).execute(&mut place.connect().await).await.unwrap();
    assert_eq!(resized(&ledger, &license, 3).await.version, last + VERSIONS_OF_COPY);
    assert_eq!(breach(&ledger).await, Err(Vec::new()));
}

#[tokio::test]
async fn lost_terms_explain_no_admission_after_newer_terms() {
    let (place, ledger) = ledger().await;
    let license = licensed(&ledger, 2).await;
    let lost = 7;
    let mut story = Story::new(&License { version: lost, ..license.clone() });
    becomes_a_copy(&place).await;
    let again = resized(&ledger, &license, 3).await;
    let by_lost_terms = story.admit("one").1;
    (story.version, story.limit) = (again.version, again.max_seats.0);
    ledger.apply(&[by_lost_terms, story.admit("two").1]).await.unwrap();
    let named = LostTerms { pool: license.pool(), version: lost, admissions: 1 };
    assert_eq!(breach(&ledger).await, Err(vec![named]));

    story.version = lost;
    ledger.apply(&[story.admit("three").1]).await.unwrap();
    let older = Breach::OlderTerms { version: lost, newest: again.version };
    assert_eq!(breach(&ledger).await, Ok(older));
}

#[tokio::test]
async fn terms_that_the_present_ledger_would_have_granted_are_never_lost() {
    let (place, ledger) = ledger().await;
    let license = licensed(&ledger, 2).await;
    becomes_a_copy(&place).await;
    resized(&ledger, &license, 3).await;
    let version = FIRST_OF_COPY + 1;
    let mut story = Story::new(&License { version, ..license });
    ledger.apply(&[story.admit("one").1]).await.unwrap();
    assert_eq!(breach(&ledger).await, Ok(Breach::LimitNotGranted { limit: 2, version, granted: None }));
}

/// Raises a bucket of a copy beyond [`EPOCH`], with the random bits `random`. Returns the new epoch.
async fn raised_in_copy(place: &TestLedger, ledger: &Ledger, random: u16) -> u64 {
    becomes_a_copy(place).await;
    let bucket = Bucket::new(7).unwrap();
    let raise = EpochRaise { bucket, seen: EPOCH, next: epoch_after(EPOCH, random) };
    let raised = ledger.raise(raiser(ledger).await, &[raise], BucketMode::Registry, None).await.unwrap();
    let rows = ledger.buckets().await.unwrap();
    assert_eq!([raised[0].epoch], [rows[usize::from(bucket.number())].epoch]);
    raised[0].epoch
}

/// Nodes remember the epochs of the first standby, which died, and drop receipts of lower epochs.
#[tokio::test]
async fn a_raise_in_a_standby_is_above_the_raises_of_a_standby_promoted_before() {
    let (first_place, first) = ledger().await;
    let (second_place, second) = crate::story::ledger().await;
    let lost = raised_in_copy(&first_place, &first, 9).await;
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let raised = raised_in_copy(&second_place, &second, 1).await;
    assert!(raised > lost, "{raised:#x} and {lost:#x}");
    assert_eq!((lost & 0xffff, raised & 0xffff), (9, 1), "the random bits");
}
