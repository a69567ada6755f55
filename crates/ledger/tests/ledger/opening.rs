//! A data directory and who may use it.

use std::os::unix::fs::PermissionsExt as _;

use futures_util::TryStreamExt as _;
use seatkeeper_core::EndReason;
use seatkeeper_ledger::{Error, Ledger, Settings, Verdict};

use crate::story::{START, Story, ledger, licensed, new_license};

#[tokio::test]
async fn a_data_directory_belongs_to_one_process_at_a_time() {
    let (dir, ledger) = ledger().await;
    let second = Ledger::open(Settings::new(dir.path())).await;
    assert!(matches!(&second, Err(Error::Locked { path }) if path == dir.path()), "{second:?}");
    let migration = Ledger::migrate(dir.path()).await;
    assert!(matches!(&migration, Err(Error::Locked { .. })), "{migration:?}");

    ledger.close().await;
    drop(ledger);
    Ledger::open(Settings::new(dir.path())).await.unwrap();
}

#[tokio::test]
async fn a_new_data_directory_is_its_owners_alone() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("new/home");
    Ledger::open(Settings::new(&home)).await.unwrap();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&home), 0o700);
    assert_eq!(mode(&home.join("ledger.db")), 0o600);
}

#[tokio::test]
async fn a_path_that_is_no_directory_is_told_by_name() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let refused = Ledger::open(Settings::new(file.path())).await;
    assert!(matches!(&refused, Err(Error::DataDir { path, .. }) if path == file.path()), "{refused:?}");
}

#[tokio::test]
async fn all_that_was_applied_is_there_after_a_restart() {
    let (dir, first) = ledger().await;
    let mut story = Story::of(&licensed(&first, 9).await);
    let mut other = Story::devices("ann");
    let (gone, a) = story.admit("gone");
    let (stays, b) = story.admit("stays");
    let c = story.end(gone, EndReason::Released);
    let (watches, d) = other.admit("tv");
    first.apply(&[a, b, c, d]).await.unwrap();
    assert_eq!(first.raise_epoch("memory:1").await.unwrap(), 1);
    drop(first);

    let second = Ledger::open(Settings::new(dir.path())).await.unwrap();
    assert_eq!(second.raise_epoch("memory:2").await.unwrap(), 2);
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
    let (_dir, ledger) = ledger().await;
    assert_eq!(ledger.last_time().await.unwrap(), None);
    assert_eq!(ledger.pool_seq(&Story::devices("ann").pool).await.unwrap(), 0);
    let pools: Vec<_> = ledger.live_sessions().try_collect().await.unwrap();
    assert_eq!(pools, []);
    ledger.apply(&[]).await.unwrap();
    ledger.ping().await.unwrap();
}

#[tokio::test]
async fn a_second_process_may_read_beside_the_owner() {
    let (dir, owner) = ledger().await;
    let reader = Ledger::open_read_only(dir.path()).await.unwrap();
    let mut story = Story::of(&licensed(&owner, 2).await);
    let (id, began) = story.admit("laptop");
    owner.apply(&[began]).await.unwrap();

    assert!(reader.session(id).await.unwrap().is_some());
    let Verdict::Proven(proof) = reader.verify(|_| ()).await.unwrap() else { panic!("a whole log") };
    assert_eq!((proof.records, proof.live), (2, 1));
    let refused =
        reader.create_license(new_license("KEY", 1), crate::story::by(&crate::story::admin())).await;
    assert!(matches!(refused, Err(Error::Database(_))), "{refused:?}");
}

#[tokio::test]
async fn reading_needs_a_ledger_of_this_version() {
    let dir = tempfile::tempdir().unwrap();
    let none = Ledger::open_read_only(dir.path()).await;
    assert!(matches!(&none, Err(Error::DataDir { .. })), "{none:?}");
    std::fs::write(dir.path().join("ledger.db"), "").unwrap();
    let empty = Ledger::open_read_only(dir.path()).await;
    let Err(Error::SchemaVersion { found: 0, wanted }) = empty else { panic!("{empty:?}") };
    assert_eq!(Ledger::migrate(dir.path()).await.unwrap(), wanted);
    Ledger::open_read_only(dir.path()).await.unwrap();
}
