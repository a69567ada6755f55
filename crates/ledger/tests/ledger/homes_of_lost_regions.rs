//! Adoptions of a lost region: its homes come over once, to one successor, after the silence.

use seatkeeper_core::{Change, EndReason, Region, UserId};
use seatkeeper_ledger::homes::{Arrival, ArrivalKind, Home, HomeState};
use seatkeeper_ledger::verify::{HomeMove, HomeMoveKind, HomeTrails, RegionBreach, Verdict};

use crate::homes::{LOST, NOW, OWN, SECOND, TARGET, arrival, assign, end, home_of, known, subscriber, terms};
use crate::story::{Story, ledger, subscribed, tenant};

#[tokio::test]
async fn the_latest_begin_before_the_end_counts_for_the_silence() {
    let (_place, ledger) = ledger().await;
    ledger.fix_own_region(OWN, true).await.unwrap();
    let (first, later, last) = (NOW, NOW + SECOND, NOW + SECOND + SECOND);
    for (successor, wanted, on_record) in
        [(OWN, first, first), (TARGET, last, first), (OWN, later, later), (OWN, first, later)]
    {
        let noted = ledger.note_adoption((LOST, successor), wanted, OWN).await.unwrap().unwrap();
        assert_eq!((noted.successor, noted.admits_from, noted.is_done), (OWN, on_record, false));
    }
    let terms = terms(&ledger).await;
    let adopted = Arrival {
        from: LOST,
        kind: ArrivalKind::Adopted,
        admits_from: Some(later),
        ..arrival(2, Vec::new())
    };
    ledger.take_home(&adopted, OWN, terms, NOW).await.unwrap().unwrap();
    let adoption = ledger.note_adoption((LOST, OWN), last, OWN).await.unwrap().unwrap();
    let taken = ledger.home(&tenant(), &adopted.user).await.unwrap().unwrap();
    assert_eq!(taken.admits_from, Some(last), "the begin counts for a home that is here already");

    end(&ledger, &adoption, &[]).await;
    let late = ledger.note_adoption((LOST, OWN), last + SECOND, OWN).await.unwrap().unwrap();
    assert_eq!((late.admits_from, late.is_done), (last, true), "a begin after the end changes nothing");
}

#[tokio::test]
async fn a_home_takes_the_silence_of_the_adoption_on_record() {
    let (_place, ledger) = ledger().await;
    let later = NOW + SECOND;
    let stale = ledger.note_adoption((LOST, OWN), NOW, OWN).await.unwrap().unwrap();
    ledger.learn_homes(&[known("left", LOST, 4, HomeState::Here)], (LOST, TARGET), OWN).await.unwrap();
    ledger.note_adoption((LOST, OWN), later, OWN).await.unwrap();
    let adopted = Arrival {
        from: LOST,
        kind: ArrivalKind::Adopted,
        admits_from: Some(stale.admits_from),
        ..arrival(2, Vec::new())
    };
    let taken = ledger.take_home(&adopted, OWN, terms(&ledger).await, NOW).await.unwrap().unwrap();
    assert_eq!(taken.admits_from, Some(later));
    end(&ledger, &stale, &[]).await;
    assert_eq!(home_of(&ledger, "left").await.admits_from, Some(later));
}

#[tokio::test]
async fn a_lost_region_keeps_its_first_successor_and_its_homes_come_once() {
    let (_place, ledger) = ledger().await;
    assert_eq!(ledger.own_region().await.unwrap(), None);
    for region in [OWN, TARGET] {
        assert_eq!(ledger.fix_own_region(region, true).await.unwrap().region, OWN);
    }
    let admits_from = NOW + SECOND;
    for successor in [OWN, TARGET] {
        let noted = ledger.note_adoption((LOST, successor), admits_from, OWN).await.unwrap().unwrap();
        assert_eq!((noted.successor, noted.admits_from, noted.is_done), (OWN, admits_from, false));
    }
    let told = [
        known("left", LOST, 4, HomeState::Here),
        known("third", TARGET, 2, HomeState::Here),
        known("moving", LOST, 2, HomeState::Moving),
    ];
    for _ in 0..2 {
        ledger.learn_homes(&told, (LOST, TARGET), OWN).await.unwrap();
    }
    assert_eq!(
        home_of(&ledger, "moving").await,
        Home::first(TARGET),
        "the home is still in the telling region"
    );
    let (_, admitted) = Story::devices("ann").admit("tv");
    let Change::Admitted { session, particulars, .. } = admitted.change else { panic!("an admission") };
    let terms = terms(&ledger).await;
    let adopted = Arrival {
        from: LOST,
        kind: ArrivalKind::Adopted,
        admits_from: Some(admits_from),
        ..arrival(2, vec![(*session, *particulars)])
    };
    for _ in 0..2 {
        let taken = ledger.take_home(&adopted, OWN, terms, NOW).await.unwrap().unwrap();
        assert_eq!((taken.version, taken.admits_from), (2, Some(admits_from)));
    }
    let [adoption] = ledger.adoptions().await.unwrap()[..] else { panic!("one adoption") };
    for _ in 0..2 {
        end(&ledger, &adoption, &[]).await;
    }
    let left = home_of(&ledger, "left").await;
    assert_eq!((left.region, left.version, left.admits_from), (OWN, 5, Some(admits_from)));
    assert_eq!(home_of(&ledger, "third").await.region, TARGET);
    let moves = ledger.home_moves().await.unwrap();
    assert!(moves.len() == 2 && moves.iter().all(|moved| moved.peer == LOST), "{moves:?}");
    // The restored ledger was read for the home that was handed over, and not for the home that was left.
    let kinds = moves.iter().map(|moved| moved.kind).collect::<Vec<_>>();
    let read = HomeMoveKind::Adopted { peer_seq: Some(7) };
    assert_eq!(kinds, [read, HomeMoveKind::Adopted { peer_seq: None }]);
    let page = ledger.homes_after((&tenant(), &UserId::new("left")), 1).await.unwrap();
    assert_eq!(page[0].user, UserId::new("moving"));
    let verdict = ledger.verify(|_| {}).await.unwrap();
    assert!(matches!(verdict, Verdict::Proven(_)), "{verdict:?}");
}

#[tokio::test]
async fn a_home_on_its_way_to_a_lost_region_goes_to_the_successor() {
    let (_place, ledger) = ledger().await;
    let (tenant, user) = subscriber();
    assign(&ledger, 1).await;
    ledger.begin_home_move(&tenant, &user, OWN, LOST).await.unwrap();
    let [to_lost] = &ledger.homes_moving().await.unwrap()[..] else { panic!("one home moves") };
    ledger.note_adoption((LOST, TARGET), NOW, OWN).await.unwrap();
    // A late answer of the lost region ends no move to the successor.
    ledger.end_home_move(to_lost).await.unwrap();
    let moving = ledger.home(&tenant, &user).await.unwrap().unwrap();
    assert_eq!((moving.region, moving.state), (TARGET, HomeState::Moving));
    let [to_successor] = &ledger.homes_moving().await.unwrap()[..] else { panic!("one home moves") };
    ledger.end_home_move(to_successor).await.unwrap();
    assert_eq!(home_of(&ledger, "ann").await.state, HomeState::Moved);
}

#[tokio::test]
async fn a_home_that_a_lost_region_took_over_and_gave_away_stays_away() {
    let (_place, ledger) = ledger().await;
    for (user, to) in [("gone", LOST), ("open", LOST), ("other", Region::new(4))] {
        let user = UserId::new(user);
        ledger.assign_home(&tenant(), &user, OWN, OWN).await.unwrap();
        ledger.begin_home_move(&tenant(), &user, OWN, to).await.unwrap();
    }
    let adoption = ledger.note_adoption((LOST, OWN), NOW, OWN).await.unwrap().unwrap();
    // The third region has `gone` from the lost region, and knows no more of `open` than the open move. The version of `other`
    // proves that the target of the open move took over.
    let told = [
        known("gone", TARGET, 3, HomeState::Here),
        known("open", LOST, 2, HomeState::Here),
        known("other", TARGET, 9, HomeState::Here),
    ];
    ledger.learn_homes(&told, (LOST, TARGET), OWN).await.unwrap();
    end(&ledger, &adoption, &[]).await;
    for (user, region, version, state) in [
        ("gone", TARGET, 3, HomeState::Here),
        ("open", OWN, 3, HomeState::Here),
        ("other", TARGET, 9, HomeState::Here),
    ] {
        let home = home_of(&ledger, user).await;
        assert_eq!((home.region, home.version, home.state), (region, version, state), "{user}");
    }
}

#[tokio::test]
async fn an_open_move_to_a_lost_region_ends_the_tenure_before_the_adoption() {
    let (_place, ledger) = ledger().await;
    let mut stories = Vec::new();
    for user in ["ann", "left", "gone"] {
        let mut story = Story::devices(user);
        let (_, before) = story.admit("tv");
        ledger.apply(&[before]).await.unwrap();
        stories.push(story);
        let user = UserId::new(user);
        ledger.assign_home(&tenant(), &user, OWN, OWN).await.unwrap();
        ledger.begin_home_move(&tenant(), &user, OWN, LOST).await.unwrap();
    }
    let adoption = ledger.note_adoption((LOST, OWN), NOW, OWN).await.unwrap().unwrap();
    // One home by the word of a third region, one by the command, and one by the end of the adoption.
    let gone = known("gone", TARGET, 3, HomeState::Here);
    ledger.learn_homes(&[gone], (LOST, TARGET), OWN).await.unwrap();
    let adopted = Arrival { from: LOST, kind: ArrivalKind::Adopted, ..arrival(3, Vec::new()) };
    let terms = terms(&ledger).await;
    for _ in 0..2 {
        ledger.take_home(&adopted, OWN, terms, NOW).await.unwrap();
    }
    end(&ledger, &adoption, &[]).await;

    let arrived = HomeMove {
        subscriber: (tenant(), UserId::new("gone")),
        version: 3,
        peer: LOST,
        seq: 0,
        kind: HomeMoveKind::Arrived { peer_seq: 0 },
    };
    let moves = [(OWN, ledger.home_moves().await.unwrap()), (TARGET, vec![arrived])];
    let check = async || {
        let mut trails = HomeTrails::join(&moves, &[(LOST, OWN)]).unwrap();
        ledger.check_admissions(OWN, &mut trails).await.unwrap()
    };
    assert_eq!(check().await, Ok(()));
    for (story, is_home) in stories.iter_mut().zip([true, true, false]) {
        let (_, after) = story.admit("phone");
        ledger.apply(&[after]).await.unwrap();
        assert_eq!(check().await.is_ok(), is_home, "{:?}", story.pool);
    }
}

#[tokio::test]
async fn an_admission_in_the_restored_ledger_after_the_adoption_is_found() {
    let (_place, ledger) = ledger().await;
    let mut story = Story::devices("ann");
    let (_, before) = story.admit("tv");
    ledger.apply(&[before]).await.unwrap();
    ledger.note_adoption((OWN, TARGET), NOW, OWN).await.unwrap();
    let check = async || {
        let mut trails =
            HomeTrails::join(&[(OWN, ledger.home_moves().await.unwrap())], &[(OWN, TARGET)]).unwrap();
        ledger.check_admissions(OWN, &mut trails).await.unwrap()
    };
    assert_eq!(check().await, Ok(()));
    let (_, after) = story.admit("phone");
    let seq = after.seq;
    ledger.apply(&[after]).await.unwrap();
    assert_eq!(
        check().await,
        Err(RegionBreach::AdmittedAfterLoss { pool: story.pool.clone(), region: OWN, seq })
    );
}

#[tokio::test]
async fn homes_in_a_region_that_the_lost_region_had_adopted_come_as_well() {
    let (_place, ledger) = ledger().await;
    let first = Region::new(4);
    ledger.note_adoption((first, LOST), NOW, OWN).await.unwrap();
    let adoption = ledger.note_adoption((LOST, OWN), NOW + SECOND, OWN).await.unwrap().unwrap();
    let told = [known("old", first, 1, HomeState::Here), known("new", LOST, 2, HomeState::Here)];
    ledger.learn_homes(&told, (LOST, TARGET), OWN).await.unwrap();
    for _ in 0..2 {
        end(&ledger, &adoption, &[first]).await;
    }
    for (user, version) in [("old", 2), ("new", 3)] {
        let home = home_of(&ledger, user).await;
        assert_eq!(
            (home.region, home.version, home.admits_from),
            (OWN, version, Some(NOW + SECOND)),
            "{user}"
        );
    }
}

#[tokio::test]
async fn a_subscriber_without_a_home_is_claimed_by_the_lost_region() {
    let (_place, ledger) = ledger().await;
    subscribed(&ledger, "ann", "basic").await;
    let (_, event) = Story::devices("bob").admit("tv");
    ledger.apply(&[event]).await.unwrap();
    // The only session of `dan` is over.
    let mut over = Story::devices("dan");
    let (dan, admitted) = over.admit("tv");
    ledger.apply(&[admitted, over.end(dan, EndReason::Released)]).await.unwrap();
    let told = known("cid", TARGET, 1, HomeState::Here);
    ledger.learn_homes(&[told], (LOST, TARGET), OWN).await.unwrap();
    for _ in 0..2 {
        ledger.claim_unassigned_homes(OWN, |_| OWN).await.unwrap();
    }
    for (user, home) in [("ann", OWN), ("bob", OWN), ("cid", TARGET), ("dan", OWN)] {
        assert_eq!(home_of(&ledger, user).await, Home::first(home), "{user}");
    }
}

/// A region that is not the anchor has a record of a subscriber without a row only if the home is elsewhere.
#[tokio::test]
async fn a_lost_region_claims_no_subscriber_of_another_anchor() {
    let (_place, ledger) = ledger().await;
    subscribed(&ledger, "ann", "basic").await;
    ledger.claim_unassigned_homes(OWN, |_| TARGET).await.unwrap();
    assert_eq!(ledger.home(&tenant(), &UserId::new("ann")).await.unwrap(), None);
    // The anchor on record counts before the settings.
    ledger.fix_anchor(&tenant(), OWN).await.unwrap();
    ledger.claim_unassigned_homes(OWN, |_| TARGET).await.unwrap();
    assert_eq!(home_of(&ledger, "ann").await, Home::first(OWN));
}
