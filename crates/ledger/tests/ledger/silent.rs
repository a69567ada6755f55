//! The ledger gives up on a database behind a silent network or behind a host that hangs up, and finds the database
//! again.

use std::time::{Duration, Instant};

use seatkeeper_ledger::{Error, Ledger, Location, PostgresUrl, Settings};
use seatkeeper_testbed::postgres::{self, Database};
use seatkeeper_testbed::proxy::{Network, Proxy};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

use crate::story::{EPOCH, Story, licensed};

/// Longer than the time limit of any statement.
const GIVEN_UP_WITHIN: Duration = Duration::from_secs(25);

/// Opens a ledger on PostgreSQL through a proxy.
async fn opened_through_proxy(database: &Database) -> (Ledger, Proxy) {
    let url = database.url();
    let (host, name) = url.rsplit_once('/').unwrap();
    let (host, port) = host.rsplit_once(':').unwrap();
    let proxy = Proxy::start(([127, 0, 0, 1], port.parse().unwrap()).into(), 1).await;
    let through: PostgresUrl = format!("{host}:{}/{name}", proxy.address().port()).parse().unwrap();
    let ledger = Ledger::open(Settings::new(Location::from(through))).await.unwrap();
    assert_eq!(ledger.raise_epoch("memory:1", 0).await.unwrap(), EPOCH);
    (ledger, proxy)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_says_nothing_is_given_up_and_found_again() {
    let database = postgres::database();
    let (ledger, proxy) = opened_through_proxy(&database).await;
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

/// A load balancer without a server behind it takes a connection, and ends the connection after the first message.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_hangs_up_on_every_connection_is_an_outage() {
    let database = postgres::database();
    let (ledger, proxy) = opened_through_proxy(&database).await;
    let balancer = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nowhere = balancer.local_addr().unwrap();
    let hanging_up = tokio::spawn(async move {
        while let Ok((mut connection, _)) = balancer.accept().await {
            // Without unread bytes, the connection ends with no error of TCP.
            let _ = connection.read(&mut [0; 64]).await;
        }
    });

    proxy.redirect(nowhere);
    // The first call may find a connection that was cut, and the next call makes a connection.
    for _ in 0..5 {
        let unanswered = ledger.buckets().await;
        assert!(matches!(unanswered, Err(Error::Unavailable(_))), "{unanswered:?}");
    }
    hanging_up.abort();
    ledger.close().await;
}
