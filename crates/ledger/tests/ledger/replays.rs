//! A raise names the journal to replay: of the epoch that served last, until a rebuild has noted the replay.

use seatkeeper_core::Bucket;
use seatkeeper_ledger::buckets::{BucketMode, EpochRaise, StaleBucket, Unreplayed};
use seatkeeper_ledger::{Error, Ledger};

use crate::place::TestLedger;
use crate::story::{EPOCH, ledger, raiser};

/// A bucket of a ledger, in epoch `epoch`.
struct Raises {
    _place: TestLedger,
    ledger: Ledger,
    bucket: Bucket,
    epoch: u64,
}

impl Raises {
    async fn begin() -> Self {
        let (place, ledger) = ledger().await;
        Self { _place: place, ledger, bucket: Bucket::new(7).unwrap(), epoch: EPOCH }
    }

    /// Raises the bucket to the next epoch in `mode`, and returns the journal to replay.
    async fn raise(&mut self, mode: BucketMode) -> Unreplayed {
        let raise = EpochRaise { bucket: self.bucket, seen: self.epoch, next: self.epoch + 1 };
        let raised = self.ledger.raise(raiser(&self.ledger).await, &[raise], mode, None).await.unwrap();
        self.epoch += 1;
        let [raised] = raised[..] else { panic!("raised {raised:?}") };
        assert_eq!(raised.bucket, self.bucket);
        raised.unreplayed
    }

    async fn note_replay(&self) {
        self.ledger.note_replay(self.bucket, self.epoch).await.unwrap();
    }
}

fn unreplayed(epoch: u64, mode: BucketMode, lower_mode: Option<BucketMode>) -> Unreplayed {
    Unreplayed { epoch, mode, lower_mode }
}

#[tokio::test]
async fn each_raise_names_the_epoch_that_served_last_until_its_replay_is_noted() {
    let mut bucket = Raises::begin().await;
    let first = unreplayed(EPOCH, BucketMode::Registry, None);
    for _ in 0..3 {
        assert_eq!(bucket.raise(BucketMode::Registry).await, first, "no rebuild has replayed the journal");
    }
    bucket.note_replay().await;
    bucket.note_replay().await;
    let second = unreplayed(EPOCH + 3, BucketMode::Registry, None);
    assert_eq!(bucket.raise(BucketMode::Ledger).await, second);
    bucket.note_replay().await;
    let third = unreplayed(EPOCH + 4, BucketMode::Ledger, None);
    assert_eq!(bucket.raise(BucketMode::Registry).await, third, "the standby has the journal");
    assert_eq!(bucket.raise(BucketMode::Registry).await, third);
}

#[tokio::test]
async fn a_raise_tells_the_lowest_mode_of_the_fallbacks_that_broke_off() {
    use BucketMode::{Allow, Deny, Ledger, Registry};
    for (broken_off, lowest) in [
        (&[Registry, Registry][..], None),
        (&[Ledger], Some(Ledger)),
        (&[Allow, Registry], Some(Allow)),
        (&[Registry, Deny, Registry], Some(Deny)),
        (&[Deny, Ledger, Allow], Some(Deny)),
        (&[Ledger, Deny], Some(Deny)),
    ] {
        let mut bucket = Raises::begin().await;
        for mode in broken_off {
            bucket.raise(*mode).await;
        }
        let expected = unreplayed(EPOCH, Registry, lowest);
        assert_eq!(bucket.raise(Registry).await, expected, "after {broken_off:?}");
        bucket.note_replay().await;
        let expected = unreplayed(bucket.epoch, Registry, None);
        assert_eq!(bucket.raise(Registry).await, expected, "after {broken_off:?} and a replay");
    }
}

/// A frozen rebuild wakes after a later raise.
#[tokio::test]
async fn a_replay_is_noted_in_the_epoch_of_its_rebuild_alone() {
    let mut bucket = Raises::begin().await;
    let first = bucket.raise(BucketMode::Registry).await;
    bucket.raise(BucketMode::Registry).await;
    for epoch in [EPOCH, bucket.epoch - 1, bucket.epoch + 1] {
        let refused = bucket.ledger.note_replay(bucket.bucket, epoch).await;
        let stale = [StaleBucket { bucket: bucket.bucket, epoch: bucket.epoch }];
        assert!(matches!(&refused, Err(Error::StaleEpoch { buckets }) if *buckets == stale), "{refused:?}");
    }
    assert_eq!(bucket.raise(BucketMode::Registry).await, first);
}

#[tokio::test]
async fn a_registry_with_a_new_memory_leaves_no_journal_to_replay() {
    let mut bucket = Raises::begin().await;
    bucket.raise(BucketMode::Deny).await;
    bucket.epoch = bucket.ledger.raise_epoch("memory:2", 0).await.unwrap();
    let expected = unreplayed(bucket.epoch, BucketMode::Registry, None);
    assert_eq!(bucket.raise(BucketMode::Registry).await, expected);
}
