//! The ledger renews the lease, the roll call extends it, and only the ledger restores a lapsed lease.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use seatkeeper_core::Bucket;
use seatkeeper_host_clock::HostInstant;
use seatkeeper_ledger::buckets::{BucketMode, BucketRow};
use seatkeeper_registry::Epochs;

use super::super::LEASE;
use super::{EpochLease, KnownEpochs, Term, Unready, VOUCHED_MAX};

fn bucket() -> Bucket {
    Bucket::new(3).expect("a bucket")
}

fn rows(epoch: u64, mode: BucketMode) -> Vec<BucketRow> {
    Bucket::all()
        .map(|bucket| BucketRow { bucket, epoch, mode, identity: None, was_raised_here: true })
        .collect()
}

fn confirmed(epoch: u64, ago: Duration) -> EpochLease {
    let lease = EpochLease::shared(KnownEpochs::default(), Arc::default(), false);
    lease.confirm(HostInstant::now() - ago, Vec::new(), rows(epoch, BucketMode::Registry));
    lease
}

#[test]
fn a_server_that_is_alone_asks_nobody() {
    let lease = EpochLease::unshared();
    let epoch = lease.epoch(bucket());
    assert!(lease.check(bucket(), epoch).now_or_never().is_some_and(|still| still.is_ok()));
}

#[test]
fn an_epoch_that_was_read_lately_holds_and_another_does_not() {
    let lease = confirmed(7, Duration::ZERO);
    assert!(lease.check(bucket(), 7).now_or_never().is_some_and(|still| still.is_ok()));
    assert!(lease.check(bucket(), 6).now_or_never().is_some_and(|still| still.is_err()));
}

#[test]
fn a_bucket_in_another_mode_is_not_served() {
    let lease = confirmed(7, Duration::ZERO);
    lease.confirm(HostInstant::now(), Vec::new(), rows(8, BucketMode::Deny));
    assert_eq!(lease.epoch(bucket()), Epochs::NONE);
    assert_eq!(lease.mode(bucket()), BucketMode::Deny);
    assert!(lease.check(bucket(), 7).now_or_never().is_some_and(|still| still.is_err()));
}

#[tokio::test]
async fn once_the_lease_is_over_an_answer_waits_until_the_epoch_is_read_again() {
    let lease = confirmed(7, LEASE);
    let mut same = Box::pin(lease.check(bucket(), 7));
    assert!(same.as_mut().now_or_never().is_none());
    lease.reading_wanted().await;
    lease.confirm(HostInstant::now() - LEASE, Vec::new(), rows(7, BucketMode::Registry));
    assert!(same.as_mut().now_or_never().is_none(), "that reading is old as well");
    lease.confirm(HostInstant::now(), Vec::new(), rows(7, BucketMode::Registry));
    assert!(same.await.is_ok());
}

#[tokio::test]
async fn who_wakes_late_learns_that_the_epoch_is_over() {
    let lease = confirmed(7, LEASE);
    let mut late = Box::pin(lease.check(bucket(), 7));
    assert!(late.as_mut().now_or_never().is_none());
    lease.confirm(HostInstant::now(), Vec::new(), rows(8, BucketMode::Registry));
    assert!(late.await.is_err());
}

#[test]
fn the_roll_extends_no_lease_a_day_after_the_latest_reading() {
    let read = HostInstant::now();
    for (later, is_extended) in [(VOUCHED_MAX - LEASE, true), (VOUCHED_MAX, false)] {
        let now = read + later;
        let term = Term { vouched: Some(now), read: Some(read), ..Term::default() };
        assert_eq!(term.may_be_vouched_for(now), is_extended, "{later:?} after the reading");
    }
}

#[test]
fn while_no_node_reaches_the_ledger_the_lease_goes_on() {
    let lease = confirmed(7, Duration::ZERO);
    assert!(lease.not_confirmed(), "the first of its kind");
    assert!(!lease.not_confirmed());
    for _ in 0..3 {
        lease.vouch(HostInstant::now());
        assert!(!lease.lapse_if_over());
        assert!(lease.check(bucket(), 7).now_or_never().is_some_and(|check| check.is_ok()));
    }
    assert!(!lease.reaches_ledger());
    assert_eq!(lease.readiness(), Ok(()));
}

#[test]
fn without_the_ledger_and_without_the_word_of_the_others_the_lease_lapses() {
    let lease = confirmed(7, LEASE);
    lease.not_confirmed();
    assert!(lease.lapse_if_over());
    assert!(!lease.lapse_if_over(), "it lapses once");
    assert_eq!(lease.epoch(bucket()), Epochs::NONE, "no call is made by it");
    assert_eq!(lease.readiness(), Err(Unready::NoLease));
}

#[test]
fn only_the_ledger_gives_a_lapsed_lease_back() {
    let lease = confirmed(7, LEASE);
    lease.not_confirmed();
    assert!(lease.lapse_if_over());
    lease.vouch(HostInstant::now());
    assert_eq!(lease.epoch(bucket()), Epochs::NONE, "the epoch may have been raised meanwhile");
    assert!(!lease.holds());
    lease.confirm(HostInstant::now(), Vec::new(), rows(8, BucketMode::Registry));
    assert_eq!(lease.epoch(bucket()), 8);
    assert!(lease.check(bucket(), 8).now_or_never().is_some_and(|check| check.is_ok()));
}

#[test]
fn the_word_of_the_others_comes_too_late_for_a_lease_that_is_over() {
    let lease = confirmed(7, LEASE);
    lease.not_confirmed();
    lease.vouch(HostInstant::now());
    assert!(lease.lapse_if_over());
}
