//! A sweep of many buckets, some of which fail.

use std::cell::Cell;

use seatkeeper_core::Bucket;
use seatkeeper_registry::{Error, Swept};

use super::sweep_all;
use crate::worker::Progress;

/// Sweeps buckets with these outcomes. Returns the result, and the number of buckets swept.
async fn swept(outcomes: Vec<Result<Swept, Error>>) -> (Result<Progress, Error>, usize) {
    let swept = Cell::new(0);
    let sweeps = outcomes.into_iter().map(async |outcome| {
        tokio::task::yield_now().await;
        swept.set(swept.get() + 1);
        outcome
    });
    let result = sweep_all(sweeps).await;
    (result, swept.get())
}

const DONE: Swept = Swept { ended: 1, more: false };
const MORE: Swept = Swept { ended: 1, more: true };

#[tokio::test]
async fn a_bucket_that_fails_holds_up_no_other_and_is_told() {
    let outcomes = vec![Err(Error::TimedOut), Ok(DONE), Ok(DONE), Ok(MORE), Ok(DONE)];
    let (result, swept) = swept(outcomes).await;
    assert!(matches!(result, Err(Error::TimedOut)), "{result:?}");
    assert_eq!(swept, 5);
}

#[tokio::test]
async fn a_bucket_with_more_to_sweep_is_told_and_one_that_is_not_served_is_skipped() {
    let not_served = || Err(Error::NotServing { bucket: Bucket::FIRST });
    let (result, swept_buckets) = swept(vec![not_served(), Ok(MORE), Ok(DONE)]).await;
    assert_eq!((result.expect("it is swept"), swept_buckets), (Progress::More, 3));
    assert_eq!(swept(vec![not_served()]).await.0.expect("it is skipped"), Progress::Idle);
}
