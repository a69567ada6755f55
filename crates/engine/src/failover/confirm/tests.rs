//! Tests of readings in which epochs have risen.

use seatkeeper_core::{Region, RegistryTime, SessionId};
use seatkeeper_ledger::{Ledger, Settings};

use super::super::{KnownEpochs, Reach};
use super::*;

#[tokio::test]
async fn streams_of_a_bucket_look_again_after_its_epoch_has_risen() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = Ledger::open(Settings::new(dir.path())).await.expect("a ledger");
    let mut rows = ledger.buckets().await.expect("its buckets");
    let (reach, endings) = (Arc::new(Reach::default()), Arc::new(Endings::default()));
    let confirm = Confirm {
        lease: Arc::new(EpochLease::shared(KnownEpochs::default(), Arc::clone(&reach), true)),
        commits: Vec::new(),
        membership: Arc::new(Membership::new("node".to_owned(), ledger.clone(), reach, None)),
        endings: Arc::clone(&endings),
    };
    confirm.note(HostInstant::now(), Vec::new(), rows.clone());

    let listen = |bucket| {
        let id = SessionId::mint(RegistryTime::default(), bucket, Region::default(), 1);
        endings.listen(id, None, 9).expect("few listeners")
    };
    let (mut raised, mut other) = (listen(rows[7].bucket), listen(rows[8].bucket));
    confirm.note(HostInstant::now(), Vec::new(), rows.clone());
    assert!(!is_woken(&mut raised).await, "no epoch has risen");
    rows[7].epoch += 1;
    confirm.note(HostInstant::now(), Vec::new(), rows);
    assert!(is_woken(&mut raised).await);
    assert!(!is_woken(&mut other).await);
    ledger.close().await;
}

/// Returns whether a listener wakes at once.
async fn is_woken(listener: &mut crate::endings::Listener) -> bool {
    let woken = listener.heard(tokio::time::Instant::now());
    tokio::time::timeout(Duration::from_millis(50), woken).await.is_ok()
}
