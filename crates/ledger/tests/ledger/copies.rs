//! A copy of the ledger lacks the latest licenses, and gets events of their pools: `audit verify` names the loss.

use seatkeeper_core::Bucket;
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::buckets::{BucketMode, EpochRaise};
use seatkeeper_ledger::verify::{Breach, LostTerms, Verdict};

use crate::place::TestLedger;
use crate::story::{EPOCH, Story, ledger, licensed, raiser};

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

#[tokio::test]
async fn a_raise_in_another_ledger_notes_a_copy_once() {
    let (place, ledger) = ledger().await;
    raises(&ledger, 1).await;
    assert_eq!(copies(&place).await, 0, "the first ledger is no copy");
    let elsewhere = "UPDATE buckets SET ledger_identity = 'elsewhere'";
    sqlx::query(elsewhere).execute(&mut place.connect().await).await.unwrap();
    raises(&ledger, 2).await;
    raises(&ledger, 3).await;
    assert_eq!(copies(&place).await, 1);
}

#[tokio::test]
async fn admissions_by_a_license_that_a_copy_lost_are_named_and_the_rest_is_proven() {
    let (place, ledger) = ledger().await;
    let (_other_place, other) = crate::story::ledger().await;
    let license = licensed(&other, 3).await;
    let (mut lost, mut kept) = (Story::new(&license), Story::new(&licensed(&ledger, 3).await));
    ledger.apply(&[lost.admit("one").1, kept.admit("one").1, lost.admit("two").1]).await.unwrap();
    let not_granted = Breach::LimitNotGranted { limit: 3, version: 1, granted: None };
    assert_eq!(breach(&ledger).await, Ok(not_granted.clone()), "the ledger is no copy");

    let mut connection = place.connect().await;
    let note =
        "INSERT INTO ledger_copies (identity, noted_at) VALUES ('old', '2020-01-01T00:00:00.000+00:00')";
    sqlx::query(note).execute(&mut connection).await.unwrap();
    assert_eq!(breach(&ledger).await, Ok(not_granted), "lost terms are forgotten within two minutes");
    let note =
        "INSERT INTO ledger_copies (identity, noted_at) VALUES ('new', '2030-01-01T00:00:00.000+00:00')";
    sqlx::query(note).execute(&mut connection).await.unwrap();
    let named = LostTerms { pool: lost.pool.clone(), version: 1, admissions: 2 };
    assert_eq!(breach(&ledger).await, Err(vec![named]));
}
