//! The ledger gives up on a database behind a silent network, and finds the database again.

use std::time::{Duration, Instant};

use seatkeeper_ledger::{Error, Ledger, Location, PostgresUrl, Settings};
use seatkeeper_testbed::postgres;
use seatkeeper_testbed::proxy::{Network, Proxy};

use crate::story::{EPOCH, Story, licensed};

/// Longer than the time limit of any statement.
const GIVEN_UP_WITHIN: Duration = Duration::from_secs(25);

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_says_nothing_is_given_up_and_found_again() {
    let database = postgres::database();
    let url = database.url();
    let (host, name) = url.rsplit_once('/').unwrap();
    let (host, port) = host.rsplit_once(':').unwrap();
    let proxy = Proxy::start(([127, 0, 0, 1], port.parse().unwrap()).into(), 1).await;
    let through: PostgresUrl = format!("{host}:{}/{name}", proxy.address().port()).parse().unwrap();
    let ledger = Ledger::open(Settings::new(Location::from(through))).await.unwrap();
    assert_eq!(ledger.raise_epoch("memory:1").await.unwrap(), EPOCH);
    let mut story = Story::new(&licensed(&ledger, 2).await);
    let (_, first) = story.admit("ann");
    ledger.apply(&[first]).await.unwrap();

    proxy.set(Network::Silent);
    let (began, (_, second)) = (Instant::now(), story.admit("bob"));
    let unanswered = tokio::time::timeout(GIVEN_UP_WITHIN, ledger.apply(std::slice::from_ref(&second)));
    let unanswered = unanswered.await.expect("an error, in time");
    assert!(matches!(unanswered, Err(Error::Unavailable(_))), "{unanswered:?} after {:?}", began.elapsed());

    proxy.set(Network::Well);
    ledger.apply(&[second]).await.unwrap();
    ledger.close().await;
}
