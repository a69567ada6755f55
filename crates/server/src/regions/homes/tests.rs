//! Homes while PostgreSQL is silent.

use std::time::Instant;

use seatkeeper_ledger::{PostgresUrl, Settings};
use seatkeeper_testbed::postgres::Postgres;
use seatkeeper_testbed::proxy::{Network, Proxy};

use super::*;

/// The longest wait for a look-up, with an allowance for scheduling delays on a busy machine.
const WAIT_MAX: Duration = Duration::from_millis(2_500);

#[tokio::test]
async fn no_request_waits_long_for_a_home_while_the_ledger_is_silent() {
    let server = tokio::task::spawn_blocking(Postgres::start).await.unwrap();
    let proxy = Proxy::start(([127, 0, 0, 1], server.port()).into(), 1).await;
    let through = format!("postgres://seatkeeper@{}/postgres", proxy.address());
    let url: PostgresUrl = through.parse().unwrap();
    let ledger = Ledger::open(Settings::new(url)).await.unwrap();
    let homes = Homes::new(&RegionSettings::default(), ledger);
    let (tenant, user) = (TenantId::new("acme"), UserId::new("ann"));
    let own = Region::new(1);
    homes.assign(&tenant, &user, own, own).await.unwrap();
    homes.refresh_moved().await.unwrap();
    assert!(homes.has_only_first());
    let old = Instant::now().checked_sub(HOME_AGE_MAX).unwrap();
    let age = || {
        let subscriber = (tenant.clone(), user.clone());
        let (home, _) = homes.known.get(&subscriber).unwrap();
        homes.known.insert(subscriber, (home, old));
    };

    proxy.set(Network::Silent);
    for _ in 0..3 {
        age();
        let asked = Instant::now();
        let home = homes.known(&tenant, &user).await.unwrap();
        assert_eq!(home.map(|home| home.region), Some(own), "the home that was read last goes on");
        assert!(homes.known(&tenant, &UserId::new("bob")).await.is_err(), "a home that was never read");
        assert_eq!(homes.moved(&tenant, &user).await.unwrap(), None);
        assert!(asked.elapsed() < WAIT_MAX, "{:?}", asked.elapsed());
    }
}

/// Another node has learnt the home, or an adoption has.
#[tokio::test]
async fn a_moved_home_on_record_is_found_before_the_node_has_read_the_changes() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(Settings::new(dir.path())).await.unwrap();
    let homes = Homes::new(&RegionSettings::default(), ledger.clone());
    homes.refresh_moved().await.unwrap();
    let (tenant, user, newer) = (TenantId::new("acme"), UserId::new("ann"), (Region::new(2), 2));
    ledger.learn_home(&tenant, &user, newer, Region::new(1)).await.unwrap();
    assert_eq!(homes.moved(&tenant, &user).await.unwrap(), None, "the changes are read once a second");
    let home = homes.moved_or_known(&tenant, &user).await.unwrap().unwrap();
    assert_eq!((home.region, home.version), newer);
    let home = homes.moved(&tenant, &user).await.unwrap().unwrap();
    assert_eq!((home.region, home.version), newer);
}
