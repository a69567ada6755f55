//! The ownership and permissions of a data directory.

use std::fs::File;
use std::os::unix::fs::PermissionsExt as _;

use futures_util::poll;
use seatkeeper_ledger::{Error, Ledger, Settings};

use crate::story::ledger;

#[tokio::test]
async fn a_data_directory_belongs_to_one_process_at_a_time() {
    let (place, ledger) = ledger().await;
    let dir = place.path();
    let second = Ledger::open(Settings::new(dir)).await;
    assert!(matches!(&second, Err(Error::Locked { path }) if path == dir), "{second:?}");
    let migration = Ledger::migrate(dir).await;
    assert!(matches!(&migration, Err(Error::Locked { .. })), "{migration:?}");

    ledger.close().await;
    drop(ledger);
    Ledger::open(Settings::new(dir)).await.unwrap();
}

#[tokio::test]
async fn a_process_that_is_about_to_be_gone_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    Ledger::open(Settings::new(dir.path())).await.unwrap().close().await;
    let dying = File::open(dir.path().join("ledger.lock")).unwrap();
    dying.try_lock().unwrap();
    let mut opening = Box::pin(Ledger::open(Settings::new(dir.path())));
    assert!(poll!(&mut opening).is_pending(), "its directory was taken from it");
    drop(dying);
    opening.await.unwrap();
}

#[tokio::test]
async fn a_new_data_directory_is_its_owners_alone() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("new/home");
    Ledger::open(Settings::new(home.as_path())).await.unwrap();
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
