//! Tests of the bucket numbers in a notice.

use super::*;

#[test]
fn buckets_are_read_as_they_were_told() {
    for every in [1, 7, 255] {
        let told: BucketSet = Bucket::all().step_by(every).collect();
        assert_eq!(buckets_of(&text_of(&told)), told.iter().collect());
        assert!(text_of(&told).len() < 8_000, "PostgreSQL takes no more");
    }
}

#[test]
fn what_cannot_be_read_may_be_any_bucket() {
    for text in ["", "x", "1  2", "1,2"] {
        assert_eq!(buckets_of(text).len(), Bucket::all().count(), "{text}");
    }
}
