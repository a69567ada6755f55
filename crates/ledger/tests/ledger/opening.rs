//! A reopened ledger has everything applied before, and a second process may read beside the owner.

use futures_util::TryStreamExt as _;
use seatkeeper_core::{EndReason, epoch_after};
use seatkeeper_ledger::verify::Verdict;
use seatkeeper_ledger::{Error, Ledger, Settings};

use crate::story::{EPOCH, START, Story, ledger, licensed, new_license};

#[tokio::test]
async fn all_that_was_applied_is_there_after_a_restart() {
    let (place, first) = ledger().await;
    let mut story = Story::new(&licensed(&first, 9).await);
    let mut other = Story::devices("ann");
    let (gone, a) = story.admit("gone");
    let (stays, b) = story.admit("stays");
    let c = story.end(gone, EndReason::Released);
    let (watches, d) = other.admit("tv");
    first.apply(&[a, b, c, d]).await.unwrap();
    drop(first);

    let second = Ledger::open(Settings::new(place.location())).await.unwrap();
    assert_eq!(second.raise_epoch("memory:2", 7).await.unwrap(), epoch_after(EPOCH, 7));
    assert_eq!(second.last_time().await.unwrap(), Some(START));
    let pools: Vec<_> = second.live_sessions().try_collect().await.unwrap();
    let told: Vec<_> = pools
        .iter()
        .map(|live| (live.pool.clone(), live.seq, live.sessions[0].id, live.sessions.len()))
        .collect();
    assert_eq!(told, [(story.pool, 3, stays, 1), (other.pool, 1, watches, 1)]);
}

#[tokio::test]
async fn an_empty_ledger_knows_nothing() {
    let (_place, ledger) = ledger().await;
    assert_eq!(ledger.last_time().await.unwrap(), None);
    assert_eq!(ledger.pool_seq(&Story::devices("ann").pool).await.unwrap(), 0);
    let pools: Vec<_> = ledger.live_sessions().try_collect().await.unwrap();
    assert_eq!(pools, []);
    ledger.apply(&[]).await.unwrap();
    ledger.ping().await.unwrap();
}

#[tokio::test]
async fn a_second_process_may_read_beside_the_owner() {
    let (place, owner) = ledger().await;
    let reader = Ledger::open_read_only(place.location()).await.unwrap();
    let mut story = Story::new(&licensed(&owner, 2).await);
    let (id, began) = story.admit("laptop");
    owner.apply(&[began]).await.unwrap();

    assert!(reader.session(id).await.unwrap().is_some());
    let Verdict::Proven(proof) = reader.verify(|_| ()).await.unwrap() else { panic!("a whole log") };
    assert_eq!((proof.records, proof.live), (2, 1));
    let refused =
        reader.create_license(new_license("KEY", 1), crate::story::by(&crate::story::admin())).await;
    assert!(matches!(refused, Err(Error::Database(_) | Error::Unavailable(_))), "{refused:?}");
}
