//! The home regions of subscribers: assigned once, and the first assignment wins. Moves of homes.

use std::time::Duration;

use seatkeeper_core::{
    Change, Particulars, PoolId, PoolKind, Region, RegistryTime, Session, Span, TenantId, Terms, UserId,
};
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::homes::{Adoption, Arrival, ArrivalKind, Home, HomeState, HomesCursor, KnownHome};
use seatkeeper_ledger::verify::Verdict;

use crate::story::{Story, TTL, ledger, subscribed, tenant};

pub(crate) const OWN: Region = Region::new(1);

pub(crate) const LOST: Region = Region::new(3);

pub(crate) const SECOND: Span = Span::from_secs(1);

pub(crate) const NOW: RegistryTime = RegistryTime::from_millis(1_800_000_000_000);

pub(crate) fn subscriber() -> (TenantId, UserId) {
    (tenant(), UserId::new("ann"))
}

pub(crate) async fn assign(ledger: &Ledger, first: u8) -> Region {
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

pub(crate) const TARGET: Region = Region::new(2);

/// Returns the terms of a subscriber without a subscription.
pub(crate) async fn terms(ledger: &Ledger) -> Terms {
    let (tenant, user) = subscriber();
    let subscriber = ledger.subscriber(&tenant, &user).await.unwrap();
    subscriber.entitled(NOW, Span::from_secs(60)).terms
}

pub(crate) fn arrival(version: u64, sessions: Vec<(Session, Particulars)>) -> Arrival {
    let (tenant, user) = subscriber();
    Arrival {
        tenant,
        user,
        version,
        from: TARGET,
        peer_seq: 7,
        sessions,
        answers: Vec::new(),
        kind: ArrivalKind::Moved,
        admits_from: None,
    }
}

#[tokio::test]
async fn a_move_begins_once_and_ends_once() {
    let (_place, ledger) = ledger().await;
    let (tenant, user) = subscriber();
    assert_eq!(ledger.begin_home_move(&tenant, &user, OWN, TARGET).await.unwrap(), None);
    assign(&ledger, 1).await;
    for _ in 0..2 {
        let begun = ledger.begin_home_move(&tenant, &user, OWN, TARGET).await.unwrap().unwrap();
        assert_eq!(begun, Home { region: TARGET, version: 2, state: HomeState::Moving, admits_from: None });
    }
    let [departure] = &ledger.homes_moving().await.unwrap()[..] else { panic!("one home moves") };
    // The word of another region ends no move.
    let told = ledger.learn_home(&tenant, &user, (Region::new(3), 9), OWN).await.unwrap().unwrap();
    assert_eq!(told.state, HomeState::Moving);
    for _ in 0..2 {
        ledger.end_home_move(departure).await.unwrap();
    }
    let moved = ledger.home(&tenant, &user).await.unwrap().unwrap();
    assert_eq!(moved, Home { region: TARGET, version: 2, state: HomeState::Moved, admits_from: None });
    assert!(!moved.admits(OWN) && !moved.admits(TARGET));
    assert_eq!(ledger.count_homes_moving().await.unwrap(), 0);
}

/// Returns the users of all homes that have moved, read page by page after a position, and the last position.
async fn moved_after(ledger: &Ledger, mut after: HomesCursor) -> (Vec<String>, HomesCursor) {
    let mut users = Vec::new();
    loop {
        let (page, last) = ledger.moved_homes_after(&after, 2).await.unwrap();
        users.extend(page.iter().map(|known| known.user.as_str().to_owned()));
        after = last;
        if page.len() < 2 {
            return (users, after);
        }
    }
}

#[tokio::test]
async fn the_homes_that_have_moved_are_read_in_the_order_of_their_changes() {
    let (_place, ledger) = ledger().await;
    for user in ["ann", "bob", "cid", "dan", "eve"] {
        let user = UserId::new(user);
        ledger.assign_home(&tenant(), &user, OWN, OWN).await.unwrap();
    }
    let (none, start) = moved_after(&ledger, HomesCursor::default()).await;
    assert!(none.is_empty(), "first homes: {none:?}");
    for user in ["dan", "bob", "cid"] {
        ledger.begin_home_move(&tenant(), &UserId::new(user), OWN, TARGET).await.unwrap();
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let (moved, last) = moved_after(&ledger, start).await;
    assert_eq!(moved, ["dan", "bob", "cid"]);
    let (none, last) = moved_after(&ledger, last).await;
    assert!(none.is_empty(), "{none:?}");
    let again = last.earlier_by(Duration::from_secs(60));
    assert_eq!(moved_after(&ledger, again).await.0, ["dan", "bob", "cid"]);
    // A change leads to the end of the order. Another region's word counts as well.
    ledger.learn_home(&tenant(), &UserId::new("fay"), (TARGET, 2), OWN).await.unwrap();
    let dan = ledger.home_moving(&tenant(), &UserId::new("dan")).await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_millis(2)).await;
    ledger.end_home_move(&dan).await.unwrap();
    let (changed, last) = moved_after(&ledger, last).await;
    assert_eq!(changed, ["fay", "dan"]);
    assert_eq!(moved_after(&ledger, last.clone()).await, (Vec::new(), last));
}

#[tokio::test]
async fn a_home_arrives_once_with_its_sessions() {
    let (_place, ledger) = ledger().await;
    let (tenant, user) = subscriber();
    let (_, admitted) = Story::devices("ann").admit("tv");
    let Change::Admitted { session, particulars, .. } = admitted.change else { panic!("an admission") };
    let terms = terms(&ledger).await;
    for (version, sessions) in [(2, vec![(*session, *particulars)]), (2, Vec::new()), (1, Vec::new())] {
        let taken = ledger.take_home(&arrival(version, sessions), OWN, terms, NOW).await.unwrap();
        assert_eq!(taken, Some(Home { region: OWN, version: 2, state: HomeState::Here, admits_from: None }));
    }
    let pool = PoolId::new(PoolKind::Subscriber, tenant.clone(), user.as_str());
    let head = ledger.pool_head(&pool).await.unwrap();
    assert_eq!((head.seq, head.sessions.len()), (1, 1));
    // The device heartbeats by the interval that the other region has told.
    assert_eq!((head.sessions[0].ttl, terms.ttl), (TTL, Span::from_secs(60)));
    // Neither an older home is learned, nor a newer home of another region's word: the home leaves by a move alone.
    for version in [1, 9] {
        let told = ledger.learn_home(&tenant, &user, (TARGET, version), OWN).await.unwrap().unwrap();
        assert_eq!((told.region, told.version), (OWN, 2));
    }
    let verdict = ledger.verify(|_| {}).await.unwrap();
    assert!(matches!(verdict, Verdict::Proven(_)), "{verdict:?}");
}

pub(crate) fn known(user: &str, region: Region, version: u64, state: HomeState) -> KnownHome {
    let home = Home { version, state, ..Home::first(region) };
    KnownHome { tenant: tenant(), user: UserId::new(user), home }
}

/// Ends an adoption, page by page.
pub(crate) async fn end(ledger: &Ledger, adoption: &Adoption, earlier: &[Region]) {
    while !ledger.end_adoption_page(adoption, earlier, OWN).await.unwrap() {}
}

pub(crate) async fn home_of(ledger: &Ledger, user: &str) -> Home {
    ledger.home(&tenant(), &UserId::new(user)).await.unwrap().expect("a home")
}
