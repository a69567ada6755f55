//! A ledger is neither opened nor migrated in a database that cannot store every name.

use seatkeeper_ledger::{Error, Ledger, Location, PostgresUrl, Settings};
use seatkeeper_testbed::postgres;

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_another_encoding_is_named() {
    let database = tokio::task::block_in_place(|| postgres::database_in("LATIN1"));
    let url: PostgresUrl = database.url().parse().unwrap();
    let settings = Settings::new(Location::from(url));
    for opened in [Ledger::open(settings.clone()).await, Ledger::open(settings).await] {
        assert!(matches!(&opened, Err(Error::Encoding { found }) if found == "LATIN1"), "{opened:?}");
    }
}
