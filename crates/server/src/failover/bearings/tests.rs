use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use seatkeeper_core::Bucket;
use seatkeeper_ledger::{BucketMode, BucketRow};
use seatkeeper_registry::Epochs;

use super::super::LEASE;
use super::{Bearings, Known};

fn bucket() -> Bucket {
    Bucket::new(3).expect("a bucket")
}

fn rows(epoch: u64, mode: BucketMode) -> Vec<BucketRow> {
    Bucket::all().map(|bucket| BucketRow { bucket, epoch, mode, identity: None }).collect()
}

fn confirmed(epoch: u64, ago: Duration) -> Bearings {
    let bearings = Bearings::shared(Known::default(), Arc::default(), false);
    bearings.confirm(Instant::now() - ago, Vec::new(), rows(epoch, BucketMode::Registry));
    bearings
}

#[test]
fn a_server_that_is_alone_asks_nobody() {
    let bearings = Bearings::alone();
    let epoch = bearings.epoch(bucket());
    assert!(bearings.still(bucket(), epoch).now_or_never().is_some_and(|still| still.is_ok()));
}

#[test]
fn an_epoch_that_was_read_lately_holds_and_another_does_not() {
    let bearings = confirmed(7, Duration::ZERO);
    assert!(bearings.still(bucket(), 7).now_or_never().is_some_and(|still| still.is_ok()));
    assert!(bearings.still(bucket(), 6).now_or_never().is_some_and(|still| still.is_err()));
}

#[test]
fn a_bucket_in_another_mode_is_not_served() {
    let bearings = confirmed(7, Duration::ZERO);
    bearings.confirm(Instant::now(), Vec::new(), rows(8, BucketMode::Deny));
    assert_eq!(bearings.epoch(bucket()), Epochs::NONE);
    assert_eq!(bearings.mode(bucket()), BucketMode::Deny);
    assert!(bearings.still(bucket(), 7).now_or_never().is_some_and(|still| still.is_err()));
}

#[tokio::test]
async fn once_the_lease_is_over_an_answer_waits_until_the_epoch_is_read_again() {
    let bearings = confirmed(7, LEASE);
    let mut same = Box::pin(bearings.still(bucket(), 7));
    assert!(same.as_mut().now_or_never().is_none());
    bearings.reading_wanted().await;
    bearings.confirm(Instant::now() - LEASE, Vec::new(), rows(7, BucketMode::Registry));
    assert!(same.as_mut().now_or_never().is_none(), "that reading is old as well");
    bearings.confirm(Instant::now(), Vec::new(), rows(7, BucketMode::Registry));
    assert!(same.await.is_ok());
}

#[tokio::test]
async fn who_wakes_late_learns_that_the_epoch_is_over() {
    let bearings = confirmed(7, LEASE);
    let mut late = Box::pin(bearings.still(bucket(), 7));
    assert!(late.as_mut().now_or_never().is_none());
    bearings.confirm(Instant::now(), Vec::new(), rows(8, BucketMode::Registry));
    assert!(late.await.is_err());
}

#[tokio::test]
async fn while_the_ledger_is_out_of_reach_the_epoch_that_is_known_goes_on() {
    let bearings = confirmed(7, LEASE);
    let mut still = Box::pin(bearings.still(bucket(), 7));
    assert!(still.as_mut().now_or_never().is_none());
    assert!(bearings.not_confirmed(Instant::now()), "the first of its kind");
    assert!(still.await.is_ok());
    assert!(!bearings.reaches_ledger());
    assert!(!bearings.not_confirmed(Instant::now()));
}
