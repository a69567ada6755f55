//! The keys of release codes: made once, shared, and rotated by age.

use seatkeeper_core::Span;

use crate::story::ledger;

#[tokio::test]
async fn a_key_is_made_once_and_kept() {
    let (_place, ledger) = ledger().await;
    let keys = ledger.release_keys().await.unwrap();
    assert_eq!((keys.len(), keys[0].generation), (1, 1));
    assert_ne!(keys[0].secret, [0; 32]);
    let again = ledger.release_keys().await.unwrap();
    assert_eq!((again.len(), again[0].secret), (1, keys[0].secret));
}

#[tokio::test]
async fn an_old_key_is_rotated_and_its_predecessor_stays_valid() {
    let (_place, ledger) = ledger().await;
    let first = ledger.release_keys().await.unwrap().remove(0);
    for generation in 2..5_u64 {
        let before = ledger.release_keys().await.unwrap();
        let keys = ledger.release_keys_rotated_after(Span::ZERO).await.unwrap();
        let generations: Vec<_> = keys.iter().map(|key| key.generation).collect();
        assert_eq!(generations, [generation, generation - 1]);
        assert_eq!(keys[1].secret, before[0].secret);
        assert_ne!(keys[0].secret, before[0].secret);
    }
    assert!(ledger.release_keys().await.unwrap().iter().all(|key| key.secret != first.secret));
}

#[tokio::test]
async fn several_nodes_make_one_key() {
    let (_place, ledger) = ledger().await;
    let read = || {
        let ledger = ledger.clone();
        tokio::spawn(async move { ledger.release_keys().await.unwrap() })
    };
    for node in [read(), read(), read(), read()] {
        let keys = node.await.unwrap();
        assert_eq!((keys.len(), keys[0].secret), (1, ledger.release_keys().await.unwrap()[0].secret));
    }
}

#[tokio::test]
async fn a_key_does_not_show_its_secret() {
    let (_place, ledger) = ledger().await;
    let key = ledger.release_keys().await.unwrap().remove(0);
    let shown = format!("{key:?}");
    assert!(!shown.contains("secret") && shown.contains("generation"), "{shown}");
}
