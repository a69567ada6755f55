//! Homes that a restored ledger has forgotten: the order in which a region tells its homes, the position that the asking
//! region keeps, and the second begin of a move.

use std::time::Duration;

use seatkeeper_core::{Region, UserId};
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::homes::{Home, HomeState, HomesCursor, HomesHere};
use seatkeeper_ledger::verify::HomeMoveKind;

use crate::story::{ledger, tenant};

const OWN: Region = Region::new(1);
const PEER: Region = Region::new(2);

fn user(name: &str) -> UserId {
    UserId::new(name)
}

async fn assign(ledger: &Ledger, name: &str, region: Region) {
    ledger.assign_home(&tenant(), &user(name), region, OWN).await.unwrap();
    tokio::time::sleep(Duration::from_millis(2)).await;
}

/// Returns the users of all homes in the region, read page by page.
async fn here(ledger: &Ledger) -> (Vec<String>, HomesHere) {
    let (mut users, mut after) = (Vec::new(), HomesCursor::default());
    loop {
        let page = ledger.homes_here_after(OWN, &after, 2).await.unwrap();
        users.extend(page.homes.iter().map(|known| known.user.as_str().to_owned()));
        if page.homes.len() < 2 {
            return (users, page);
        }
        after = page.last;
    }
}

#[tokio::test]
async fn a_region_tells_the_homes_that_are_in_it_in_the_order_of_their_changes() {
    let (_place, ledger) = ledger().await;
    for name in ["eve", "dan", "cid", "bob"] {
        assign(&ledger, name, OWN).await;
    }
    assign(&ledger, "ann", PEER).await;
    ledger.begin_home_move(&tenant(), &user("dan"), OWN, PEER).await.unwrap();
    let (users, page) = here(&ledger).await;
    assert_eq!(users, ["eve", "cid", "bob"]);
    // An earlier change may still be committed: the homes are told again.
    assert!(page.settled < page.last, "{page:?}");
    let again = ledger.homes_here_after(OWN, &page.settled, 10).await.unwrap();
    assert_eq!(again.homes.len(), 3);
    let behind = ledger.homes_here_after(OWN, &page.last, 10).await.unwrap();
    assert_eq!((behind.homes.len(), behind.last), (0, page.last));
}

#[tokio::test]
async fn the_position_in_the_order_of_another_region_is_on_record() {
    let (_place, ledger) = ledger().await;
    assert_eq!(ledger.last_learnt_home(PEER).await.unwrap(), HomesCursor::default());
    let mut told = Vec::new();
    for name in ["ann", "bob"] {
        assign(&ledger, name, OWN).await;
        let position = here(&ledger).await.1.last;
        ledger.note_learnt_home(PEER, &position).await.unwrap();
        assert_eq!(ledger.last_learnt_home(PEER).await.unwrap(), position);
        assert_eq!(ledger.last_learnt_home(Region::new(3)).await.unwrap(), HomesCursor::default());
        told.push(position);
    }
    assert!(told[0] < told[1], "{told:?}");
    // The clock of the other region is far ahead.
    let ahead: HomesCursor =
        serde_json::from_str(r#"{"since":"2200-01-01T00:00:00Z","tenant":"acme","user":"ann"}"#).unwrap();
    ledger.note_learnt_home(PEER, &ahead).await.unwrap();
    let noted = ledger.last_learnt_home(PEER).await.unwrap();
    assert!(told[1] < noted && noted < ahead, "{noted:?}");
}

#[tokio::test]
async fn a_forgotten_move_begins_again_by_the_version_of_its_target() {
    let (_place, ledger) = ledger().await;
    assign(&ledger, "ann", OWN).await;
    let begin = async |version| {
        ledger.begin_forgotten_move(&tenant(), &user("ann"), OWN, (PEER, version)).await.unwrap()
    };
    assert!(!begin(1).await, "the version is not newer");
    assert!(begin(4).await);
    assert!(!begin(5).await, "the home is on its way");
    let departure = ledger.home_moving(&tenant(), &user("ann")).await.unwrap().unwrap();
    assert_eq!((departure.home.region, departure.home.version), (PEER, 4));
    ledger.end_home_move(&departure).await.unwrap();
    let moved = ledger.home(&tenant(), &user("ann")).await.unwrap();
    assert_eq!(moved, Some(Home { version: 4, state: HomeState::Moved, ..Home::first(PEER) }));
    assert!(!begin(5).await, "the home is elsewhere");
    let moves = ledger.home_moves().await.unwrap();
    let kinds: Vec<_> = moves.iter().map(|moved| (moved.version, moved.peer, moved.kind)).collect();
    assert_eq!(kinds, [(4, PEER, HomeMoveKind::Forgotten), (4, PEER, HomeMoveKind::Left)]);
}
