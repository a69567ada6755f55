//! A ledger is not opened through a connection pooler that takes away the settings of connections.

use seatkeeper_ledger::{Error, Ledger, Location, PostgresUrl, Settings};
use seatkeeper_testbed::postgres::{self, Pooler};

async fn opened_through(settings: &[&str]) -> Result<Ledger, Error> {
    let database = postgres::database();
    let direct: PostgresUrl = database.url().parse().unwrap();
    Ledger::open(Settings::new(Location::from(direct))).await.unwrap().close().await;
    let pooler = tokio::task::block_in_place(|| Pooler::start(&database, settings));
    let url: PostgresUrl = pooler.url().parse().unwrap();
    Ledger::open(Settings::new(Location::from(url))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_that_refuses_the_settings_of_connections_is_named() {
    let opened = opened_through(&[]).await;
    assert!(matches!(opened, Err(Error::BehindPooler)), "{opened:?}");
}

/// The usual advice for clients that send settings makes the pooler drop the settings without an error.
#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_that_drops_the_settings_of_connections_is_named() {
    for mode in ["pool_mode = session", "pool_mode = transaction"] {
        let opened = opened_through(&["ignore_startup_parameters = extra_float_digits,options", mode]).await;
        assert!(matches!(opened, Err(Error::BehindPooler)), "{mode}: {opened:?}");
    }
}
