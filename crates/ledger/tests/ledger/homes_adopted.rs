//! Homes at the begin of an adoption: a home that arrives late from the lost region, and a home whose open move is over in the
//! target. Sessions that moved on with their home.

use seatkeeper_core::{EndReason, Region, SessionId, UserId};
use seatkeeper_ledger::homes::{Arrival, Home, HomeState};
use seatkeeper_ledger::verify::{HomeMove, HomeMoveKind, HomeTrails};
use seatkeeper_ledger::{Error, Ledger};

use crate::homes::{LOST, NOW, OWN, arrival, end, home_of, known, terms};
use crate::story::{Story, ledger, tenant};

const TARGET: Region = Region::new(2);

#[tokio::test]
async fn no_home_arrives_from_a_region_whose_adoption_is_on_record() {
    let (_place, ledger) = ledger().await;
    ledger.fix_own_region(OWN, true).await.unwrap();
    let terms = terms(&ledger).await;
    let late = Arrival { from: LOST, ..arrival(2, Vec::new()) };
    for successor in [OWN, TARGET] {
        ledger.note_adoption((LOST, successor), NOW, OWN).await.unwrap();
        let refused = ledger.take_home(&late, OWN, terms, NOW).await;
        assert!(matches!(refused, Err(Error::RegionAdopted { lost: LOST })), "{refused:?}");
    }
    assert_eq!(ledger.home(&tenant(), &late.user).await.unwrap(), None);
    let taken = ledger.take_home(&arrival(2, Vec::new()), OWN, terms, NOW).await.unwrap();
    assert!(taken.is_some_and(|home| home.admits(OWN)), "a home arrives from any other region: {taken:?}");
}

/// Begins the move of a new home from this region to `TARGET`.
async fn begin_move(ledger: &Ledger, user: &str) {
    let user = UserId::new(user);
    ledger.assign_home(&tenant(), &user, OWN, OWN).await.unwrap();
    ledger.begin_home_move(&tenant(), &user, OWN, TARGET).await.unwrap();
}

#[tokio::test]
async fn a_home_that_the_target_of_an_open_move_gave_to_the_lost_region_is_adopted() {
    let (_place, ledger) = ledger().await;
    for user in ["gone", "there"] {
        begin_move(&ledger, user).await;
    }
    let gone = UserId::new("gone");
    let open = ledger.home_moving(&tenant(), &gone).await.unwrap().expect("an open move");
    let adoption = ledger.note_adoption((LOST, OWN), NOW, OWN).await.unwrap().unwrap();
    // The target has `there`, and has given `gone` to the lost region.
    let told = [known("gone", LOST, 3, HomeState::Here), known("there", TARGET, 2, HomeState::Here)];
    ledger.learn_homes(&told, (LOST, TARGET), OWN).await.unwrap();
    assert_eq!(home_of(&ledger, "gone").await, Home { version: 3, ..Home::first(LOST) });
    // A late answer of the target ends no move.
    ledger.end_home_move(&open).await.unwrap();
    end(&ledger, &adoption, &[]).await;
    let adopted = home_of(&ledger, "gone").await;
    assert_eq!((adopted.region, adopted.version, adopted.state), (OWN, 4, HomeState::Here));
    let waiting = home_of(&ledger, "there").await;
    assert_eq!((waiting.region, waiting.version, waiting.state), (TARGET, 2, HomeState::Moving));

    // The records of the target join with the records of the successor.
    let moves = ledger.home_moves().await.unwrap();
    let left = moves.iter().find(|moved| moved.kind == HomeMoveKind::Left).expect("the end of the open move");
    assert_eq!((left.version, left.peer), (2, TARGET));
    let of_target =
        |version, peer, kind| HomeMove { subscriber: (tenant(), gone.clone()), version, peer, seq: 0, kind };
    let of_target = vec![
        of_target(2, OWN, HomeMoveKind::Arrived { peer_seq: 0 }),
        of_target(3, LOST, HomeMoveKind::Left),
    ];
    let joined = HomeTrails::join(&[(OWN, moves), (TARGET, of_target)], &[(LOST, OWN)]);
    assert!(joined.is_ok(), "{joined:?}");
}

/// Admits a session of `ann`, ends the session for `reason`, and returns the session's id.
async fn end_session(ledger: &Ledger, story: &mut Story, reason: EndReason) -> SessionId {
    let (id, admitted) = story.admit("tv");
    let ended = story.end(id, reason);
    ledger.apply(&[admitted, ended]).await.unwrap();
    id
}

#[tokio::test]
async fn a_session_moved_on_to_the_target_of_the_first_move_after_its_end() {
    let (_place, ledger) = ledger().await;
    let (mut story, ann) = (Story::devices("ann"), UserId::new("ann"));
    let before = end_session(&ledger, &mut story, EndReason::Evicted).await;
    let mut moved = Vec::new();
    for to in [TARGET, LOST] {
        ledger.assign_home(&tenant(), &ann, OWN, OWN).await.unwrap();
        let session = end_session(&ledger, &mut story, EndReason::Moved).await;
        ledger.begin_home_move(&tenant(), &ann, OWN, to).await.unwrap();
        assert_eq!(ledger.session_moved_to(session).await.unwrap(), None, "the move is under way");
        let open = ledger.home_moving(&tenant(), &ann).await.unwrap().expect("an open move");
        ledger.end_home_move(&open).await.unwrap();
        moved.push((session, to));
        // The home comes back.
        let back = Arrival { from: to, ..arrival(open.home.version + 1, Vec::new()) };
        ledger.take_home(&back, OWN, terms(&ledger).await, NOW).await.unwrap();
    }
    for (session, to) in moved {
        assert_eq!(ledger.session_moved_to(session).await.unwrap(), Some(to));
    }
    assert_eq!(ledger.session_moved_to(before).await.unwrap(), None);
}
