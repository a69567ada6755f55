//! A fallback is a repeated fallback if it follows a return closely.

use std::time::{Duration, Instant};

use seatkeeper_core::{Bucket, BucketSet};
use seatkeeper_ledger::buckets::{BucketMode, BucketRow};

use super::Fallbacks;

const A_SECOND: Duration = Duration::from_secs(1);

/// Returns the ledger's rows while `fallen` is in a fallback.
fn rows(fallen: Option<Bucket>) -> Vec<BucketRow> {
    let mode = |bucket| if Some(bucket) == fallen { BucketMode::Ledger } else { BucketMode::Registry };
    let row =
        |bucket| BucketRow { bucket, epoch: 1, mode: mode(bucket), identity: None, was_raised_here: true };
    Bucket::all().map(row).collect()
}

/// The instants of a bucket's second way: in seconds after the first return.
struct SecondFallback {
    /// The registry serves the bucket again.
    served: u32,
    /// The bucket leaves the registry again.
    falls: u32,
}

/// Lets a bucket fall back, return, and fall back again. Returns the bucket and the buckets with repeated fallbacks.
fn fallen_again(SecondFallback { served, falls }: SecondFallback) -> (Bucket, BucketSet) {
    let (mut fallbacks, began) = (Fallbacks::default(), Instant::now());
    let bucket = Bucket::all().nth(7).expect("a bucket");
    let all_but_bucket = || Bucket::all().filter(|other| *other != bucket).collect();
    let none = BucketSet::default();
    assert_eq!(fallbacks.note(&rows(None), BucketSet::ALL, began), none);
    assert_eq!(fallbacks.note(&rows(Some(bucket)), BucketSet::ALL, began + A_SECOND), none);
    assert_eq!(fallbacks.note(&rows(Some(bucket)), BucketSet::ALL, began + 2 * A_SECOND), none);
    let returned = began + 3 * A_SECOND;
    for second in 0..falls {
        let in_service = if second < served { all_but_bucket() } else { BucketSet::ALL };
        assert_eq!(fallbacks.note(&rows(None), in_service, returned + second * A_SECOND), none);
    }
    (bucket, fallbacks.note(&rows(Some(bucket)), all_but_bucket(), returned + falls * A_SECOND))
}

#[test]
fn a_second_fallback_soon_is_a_repeated_one() {
    let (bucket, repeated) = fallen_again(SecondFallback { served: 0, falls: 14 });
    assert_eq!(repeated, [bucket].into_iter().collect());
}

#[test]
fn a_second_fallback_after_a_while_is_not() {
    let (_, repeated) = fallen_again(SecondFallback { served: 0, falls: 15 });
    assert_eq!(repeated, BucketSet::default());
}

#[test]
fn the_time_of_a_return_that_takes_long_does_not_count() {
    let (bucket, repeated) = fallen_again(SecondFallback { served: 8, falls: 22 });
    assert_eq!(repeated, [bucket].into_iter().collect());
    let (bucket, repeated) = fallen_again(SecondFallback { served: 60, falls: 30 });
    assert_eq!(repeated, [bucket].into_iter().collect(), "the return never came to its end");
    let (_, repeated) = fallen_again(SecondFallback { served: 8, falls: 23 });
    assert_eq!(repeated, BucketSet::default());
}
