//! A waiter wakes at its own commit, and backpressure applies only to a journal past half.

use std::time::Instant;

use futures_util::FutureExt;
use seatkeeper_core::{BUCKETS, Bucket};
use seatkeeper_registry::Receipt;

use super::{Commits, KEEPING_UP_WAIT_MAX, Overtaken};

/// A bucket's share of the first half of the journal.
const SHARE: u64 = 4;

/// The number of events in the first half of the journal.
const HALF: u64 = SHARE * BUCKETS as u64;

fn commits() -> Commits {
    Commits::new(2 * HALF)
}

fn receipt(bucket: u16, position: u64) -> Receipt {
    in_epoch(1, bucket, position)
}

fn in_epoch(epoch: u64, bucket: u16, position: u64) -> Receipt {
    Receipt { bucket: Bucket::new(bucket).expect("a bucket"), epoch, position }
}

#[test]
fn what_is_committed_is_not_waited_for() {
    let commits = commits();
    assert!(commits.reached(receipt(7, 0)).now_or_never().is_some(), "there was nothing to wait for");
    commits.advance(receipt(7, 3));
    assert!(commits.reached(receipt(7, 3)).now_or_never().is_some());
}

#[tokio::test]
async fn a_commit_wakes_those_it_reaches_and_nobody_else() {
    let commits = commits();
    let (mut near, mut far) =
        (Box::pin(commits.reached(receipt(7, 1))), Box::pin(commits.reached(receipt(7, 2))));
    let mut elsewhere = Box::pin(commits.reached(receipt(8, 1)));
    for waiting in [&mut near, &mut far, &mut elsewhere] {
        assert!(waiting.as_mut().now_or_never().is_none());
    }
    commits.advance(receipt(7, 1));
    assert!(near.as_mut().now_or_never().is_some());
    assert!(far.as_mut().now_or_never().is_none(), "its record is not on disk");
    assert!(elsewhere.as_mut().now_or_never().is_none(), "buckets commit by themselves");
    commits.advance(receipt(7, 2));
    assert!(far.as_mut().now_or_never().is_some());
}

#[test]
fn whoever_gives_up_is_not_waited_for() {
    let commits = commits();
    let mut waiting = Box::pin(commits.reached(receipt(7, 1)));
    assert!(!commits.are_awaited());
    assert!(waiting.as_mut().now_or_never().is_none());
    assert!(commits.are_awaited());
    drop(waiting);
    assert!(!commits.are_awaited());
}

#[test]
fn an_older_commit_takes_nothing_back() {
    let commits = commits();
    commits.advance(receipt(7, 5));
    commits.advance(receipt(7, 2));
    assert!(commits.reached(receipt(7, 5)).now_or_never().is_some());
}

#[test]
fn whoever_waits_in_an_epoch_that_is_over_is_told_so() {
    let commits = commits();
    let mut waiting = Box::pin(commits.reached(receipt(7, 3)));
    let mut elsewhere = Box::pin(commits.reached(receipt(8, 3)));
    let mut ahead = Box::pin(commits.reached(in_epoch(2, 7, 1)));
    for waiting in [&mut waiting, &mut elsewhere, &mut ahead] {
        assert!(waiting.as_mut().now_or_never().is_none());
    }
    commits.advance(in_epoch(2, 7, 0));
    assert_eq!(waiting.now_or_never(), Some(Err(Overtaken)));
    assert_eq!(commits.reached(receipt(7, 1)).now_or_never(), Some(Err(Overtaken)), "nor later");
    assert!(elsewhere.as_mut().now_or_never().is_none(), "buckets have epochs of their own");
    assert!(ahead.as_mut().now_or_never().is_none());
    commits.advance(in_epoch(2, 7, 1));
    assert_eq!(ahead.now_or_never(), Some(Ok(())));
}

#[test]
fn a_place_in_a_new_epoch_is_not_one_in_the_old() {
    let commits = commits();
    commits.advance(receipt(7, 5));
    let mut waiting = Box::pin(commits.reached(in_epoch(2, 7, 3)));
    assert!(waiting.as_mut().now_or_never().is_none(), "five were committed in the epoch before");
    commits.advance(receipt(7, 9));
    assert!(waiting.as_mut().now_or_never().is_none());
    commits.advance(in_epoch(2, 7, 3));
    assert_eq!(waiting.now_or_never(), Some(Ok(())));
}

#[test]
fn those_who_gave_up_are_forgotten() {
    let commits = commits();
    for _ in 0..100 {
        assert!(commits.reached(receipt(7, 1)).now_or_never().is_none());
    }
    let waiting = commits.progress(receipt(7, 1).bucket).lock().waiting.len();
    assert!(waiting <= 1, "{waiting} still wait");
}

#[tokio::test]
async fn whoever_needs_no_record_waits_only_while_the_ledger_is_far_behind() {
    let commits = commits();
    let far = receipt(7, SHARE + 2);
    assert!(commits.keep_up(far, HALF).now_or_never().is_some(), "the journal has room");
    assert!(commits.keep_up(receipt(7, SHARE), HALF + 1).now_or_never().is_some(), "others took it up");
    let mut waiting = Box::pin(commits.keep_up(far, HALF + 1));
    assert!(waiting.as_mut().now_or_never().is_none());
    commits.advance(receipt(7, 1));
    assert!(waiting.as_mut().now_or_never().is_none());
    commits.advance(receipt(7, 2));
    assert!(waiting.as_mut().now_or_never().is_some());
}

#[tokio::test]
async fn whoever_needs_no_record_does_not_wait_for_a_ledger_that_fails_or_hangs() {
    let commits = commits();
    let far = receipt(7, SHARE + 1);
    let asked_at = Instant::now();
    commits.keep_up(far, HALF + 1).await;
    assert!(asked_at.elapsed() >= KEEPING_UP_WAIT_MAX);
    commits.tried(true);
    assert!(commits.keep_up(far, HALF + 1).now_or_never().is_some());
}
