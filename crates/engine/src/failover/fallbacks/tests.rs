//! A fallback is a repeated fallback if it follows a return closely.

use std::time::{Duration, Instant};

use seatkeeper_core::{Bucket, BucketSet};
use seatkeeper_ledger::buckets::{BucketMode, BucketRow};

use super::{Fallbacks, REPEATED_WITHIN};

const A_SECOND: Duration = Duration::from_secs(1);

/// Returns the ledger's rows while `fallen` is in a fallback.
fn rows(fallen: Option<Bucket>) -> Vec<BucketRow> {
    let mode = |bucket| if Some(bucket) == fallen { BucketMode::Ledger } else { BucketMode::Registry };
    let row =
        |bucket| BucketRow { bucket, epoch: 1, mode: mode(bucket), identity: None, was_raised_here: true };
    Bucket::all().map(row).collect()
}

/// Lets a bucket fall back, return, and fall back again after `time`. Returns the bucket and the buckets with
/// repeated fallbacks.
fn fallen_again_after(time: Duration) -> (Bucket, BucketSet) {
    let (mut fallbacks, began) = (Fallbacks::default(), Instant::now());
    let bucket = Bucket::all().nth(7).expect("a bucket");
    assert_eq!(fallbacks.note(&rows(None), began), BucketSet::default());
    assert_eq!(fallbacks.note(&rows(Some(bucket)), began + A_SECOND), BucketSet::default());
    assert_eq!(fallbacks.note(&rows(Some(bucket)), began + 2 * A_SECOND), BucketSet::default());
    assert_eq!(fallbacks.note(&rows(None), began + 3 * A_SECOND), BucketSet::default());
    (bucket, fallbacks.note(&rows(Some(bucket)), began + 3 * A_SECOND + time))
}

#[test]
fn a_second_fallback_soon_is_a_repeated_one() {
    let (bucket, repeated) = fallen_again_after(REPEATED_WITHIN - A_SECOND);
    assert_eq!(repeated, [bucket].into_iter().collect());
}

#[test]
fn a_second_fallback_after_a_while_is_not() {
    let (_, repeated) = fallen_again_after(REPEATED_WITHIN);
    assert_eq!(repeated, BucketSet::default());
}
