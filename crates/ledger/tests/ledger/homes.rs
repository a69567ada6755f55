//! The home regions of subscribers: assigned once, and the first assignment wins.

use seatkeeper_core::{Region, TenantId, UserId};
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::homes::Home;

use crate::story::{Story, ledger, subscribed, tenant};

const OWN: Region = Region::new(1);

fn subscriber() -> (TenantId, UserId) {
    (tenant(), UserId::new("ann"))
}

async fn assign(ledger: &Ledger, first: u8) -> Region {
    let (tenant, user) = subscriber();
    ledger.assign_home(&tenant, &user, Region::new(first), OWN).await.unwrap().region
}

#[tokio::test]
async fn a_home_is_assigned_once() {
    let (_place, ledger) = ledger().await;
    let (tenant, user) = subscriber();
    assert_eq!(ledger.home(&tenant, &user).await.unwrap(), None);
    assert_eq!(assign(&ledger, 255).await, Region::new(255));
    assert_eq!(assign(&ledger, 2).await, Region::new(255));
    assert_eq!(ledger.home(&tenant, &user).await.unwrap(), Some(Home::first(Region::new(255))));
    assert_eq!(ledger.home(&tenant, &UserId::new("bob")).await.unwrap(), None);
}

#[tokio::test]
async fn of_many_assignments_at_once_one_wins() {
    let (_place, ledger) = ledger().await;
    let assignments: Vec<_> = (1..=8)
        .map(|region| {
            let ledger = ledger.clone();
            tokio::spawn(async move { assign(&ledger, region).await })
        })
        .collect();
    let mut homes = Vec::new();
    for assignment in assignments {
        homes.push(assignment.await.unwrap());
    }
    homes.dedup();
    assert_eq!(homes.len(), 1, "{homes:?}");
}

#[tokio::test]
async fn a_subscriber_with_a_history_or_a_subscription_here_is_at_home_here() {
    let (_place, ledger) = ledger().await;
    subscribed(&ledger, "ann", "basic").await;
    let (_, event) = Story::devices("bob").admit("tv");
    ledger.apply(&[event]).await.unwrap();
    for (user, home) in [("ann", OWN), ("bob", OWN), ("cid", Region::new(2))] {
        let assigned = ledger.assign_home(&tenant(), &UserId::new(user), Region::new(2), OWN).await.unwrap();
        assert_eq!(assigned, Home::first(home), "{user}");
    }
}

#[tokio::test]
async fn an_anchor_is_fixed_once() {
    let (_place, ledger) = ledger().await;
    for (tenant, asked, fixed) in [("acme", 2, 2), ("acme", 3, 2), ("globex", 3, 3)] {
        let anchor = ledger.fix_anchor(&TenantId::new(tenant), Region::new(asked)).await.unwrap();
        assert_eq!(anchor, Region::new(fixed), "{tenant}");
    }
}
