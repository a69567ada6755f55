//! The home regions of subscribers: assigned once, and the first assignment wins.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;

use seatkeeper_core::{
    Change, EndReason, Particulars, PoolId, PoolKind, Region, RegistryTime, Session, Span, TenantId, Terms,
    UserId,
};
use seatkeeper_ledger::homes::{Adoption, Arrival, ArrivalKind, Home, HomeState, HomesCursor, KnownHome};
use seatkeeper_ledger::licenses::License;
use seatkeeper_ledger::subscriptions::{
    Subscription, SubscriptionChange, SubscriptionFilter, SubscriptionId, SubscriptionStatus,
};
use seatkeeper_ledger::verify::{HomeMove, HomeMoveKind, HomeTrails, RegionBreach, Verdict};
use seatkeeper_ledger::{Effect, Error, Idempotency, Ledger, Write};

use crate::story::{
    START, Story, TTL, admin, by, ledger, licensed, new_license, new_subscription, subscribed, tenant,
};

pub(crate) const OWN: Region = Region::new(1);

pub(crate) const NOW: RegistryTime = RegistryTime::from_millis(1_800_000_000_000);

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

const TARGET: Region = Region::new(2);

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

pub(crate) const LOST: Region = Region::new(3);

pub(crate) const SECOND: Span = Span::from_secs(1);

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

async fn admit_kept(ledger: &Ledger, pool: &PoolId, terms: Terms) {
    let Ok(()) =
        ledger.adopt_sessions(pool, terms, async { Ok::<_, Infallible>(NOW + SECOND) }).await.unwrap();
}

/// Admits a session to a story of another ledger.
fn held_elsewhere(story: &mut Story, machine: &str) -> (Session, Particulars) {
    let (_, event) = story.admit(machine);
    let Change::Admitted { session, particulars, .. } = event.change else { panic!("an admission") };
    (*session, *particulars)
}

#[tokio::test]
async fn no_kept_session_outlasts_its_pool_s_opening_or_the_adoption() {
    let (_place, ledger) = ledger().await;
    let license = licensed(&ledger, 9).await;
    let (pool, mut story, terms) = (license.pool(), Story::new(&license), license.terms(SECOND));
    let held: Vec<_> = (0..4).map(|number| held_elsewhere(&mut story, &format!("m{number}"))).collect();
    let adoption = ledger.note_adoption((LOST, OWN), NOW, OWN).await.unwrap().unwrap();
    let live = async || ledger.pool_head(&pool).await.unwrap().sessions.len();

    ledger.keep_arriving_sessions(LOST, &pool, &held[..1]).await.unwrap();
    ledger.drop_arriving_sessions(&pool).await.unwrap();
    admit_kept(&ledger, &pool, terms).await;
    assert_eq!(live().await, 0);

    // The end of the adoption deletes the sessions from the lost region alone.
    for (lost, held) in [(LOST, &held[1..3]), (TARGET, &held[3..])] {
        ledger.keep_arriving_sessions(lost, &pool, held).await.unwrap();
    }
    end(&ledger, &adoption, &[]).await;
    admit_kept(&ledger, &pool, terms).await;
    assert_eq!(live().await, 1);
}

#[tokio::test]
async fn of_thousands_of_sessions_the_newest_that_are_not_on_record_are_taken_over() {
    let (_place, ledger) = ledger().await;
    let license = licensed(&ledger, 3_000).await;
    let (pool, mut story, mut arriving) = (license.pool(), Story::new(&license), Vec::new());
    // Of the sessions on record here, one is live and two are over.
    for machine in ["m1", "m2", "m3"] {
        let (id, event) = story.admit(machine);
        let Change::Admitted { session, particulars, .. } = event.change.clone() else {
            panic!("an admission")
        };
        arriving.push((*session, *particulars));
        ledger.apply(&[event]).await.unwrap();
        if machine != "m1" {
            ledger.apply(&[story.end(id, EndReason::Released)]).await.unwrap();
        }
    }
    let on_record = arriving.clone();
    let mut elsewhere = Story::new(&license);
    for number in 0..4_000 {
        elsewhere.pass(Span::from_millis(1));
        arriving.push(held_elsewhere(&mut elsewhere, &format!("n{number}")));
    }
    let newest: BTreeSet<_> =
        arriving[arriving.len() - 2_999..].iter().map(|(session, _)| session.id).collect();
    // The oldest heartbeats arrive first, behind the sessions on record, whose heartbeats are the newest.
    for (session, _) in &mut arriving[..3] {
        session.last_heartbeat = elsewhere.now + SECOND;
    }
    ledger.keep_arriving_sessions(LOST, &pool, &arriving).await.unwrap();
    admit_kept(&ledger, &pool, license.terms(SECOND)).await;
    let live = ledger.pool_head(&pool).await.unwrap().sessions;
    let live: BTreeSet<_> = live.iter().map(|session| session.id).collect();
    assert_eq!(live.len(), 3_000);
    assert!(live.is_superset(&newest) && live.contains(&on_record[0].0.id));
    let verdict = ledger.verify(|_| {}).await.unwrap();
    assert!(matches!(verdict, Verdict::Proven(_)), "{verdict:?}");
}

#[tokio::test]
async fn a_license_of_a_lost_region_goes_on_with_its_sessions() {
    let (_lost, from) = ledger().await;
    let (_place, into) = ledger().await;
    let license = licensed(&from, 2).await;
    assert_eq!(from.tenants_of_anchor(LOST).await.unwrap(), [(tenant(), None)]);
    let mut story = Story::new(&license);
    let sessions: Vec<_> =
        ["m1", "m2", "m3"].into_iter().map(|machine| held_elsewhere(&mut story, machine)).collect();
    let terms = license.terms(SECOND);
    for is_repeated in [false, true] {
        let adopted = into.adopt_license(license.clone(), &[], NOW).await.unwrap();
        assert_eq!((adopted.id, &adopted.key, adopted.version), (license.id, &license.key, 1));
        for arriving in sessions.chunks(2) {
            // A restart between two messages opens no pool with a part of the sessions.
            let live = into.pool_head(&license.pool()).await.unwrap().sessions.len();
            assert!(live == 0 || is_repeated, "{live}");
            into.keep_arriving_sessions(LOST, &license.pool(), arriving).await.unwrap();
        }
        // Without the registry's time nothing changes.
        let failed = into.adopt_sessions(&license.pool(), terms, async { Err("no time") }).await.unwrap();
        assert_eq!(failed, Err("no time"));
        admit_kept(&into, &license.pool(), terms).await;
        // No more sessions than seats are taken over.
        assert_eq!(into.pool_head(&license.pool()).await.unwrap().sessions.len(), 2);
    }
    assert_eq!(into.longest_ttl().await.unwrap(), TTL);
    let verdict = into.verify(|_| {}).await.unwrap();
    assert!(matches!(verdict, Verdict::Proven(_)), "{verdict:?}");
}

/// Creates a license under an idempotency key, and returns its id and the effect of the write.
async fn create_once(ledger: &Ledger, key: &str, hash: u8) -> (License, Effect) {
    let once = Idempotency { key: key.to_owned(), request_hash: vec![hash; 32] };
    let origin = admin();
    let write = Write { idempotency: Some(&once), ..by(&origin) };
    let new = new_license(&format!("KEY-{}", uuid::Uuid::new_v4()), 3);
    let written = ledger.create_license(new, write).await.unwrap();
    (written.value, written.effect)
}

#[tokio::test]
async fn the_kept_answers_of_a_license_come_along_and_replace_none() {
    let (_lost, from) = ledger().await;
    let (_place, into) = ledger().await;
    let (license, _) = create_once(&from, "first", 1).await;
    let (other, _) = create_once(&from, "second", 2).await;
    let (own, _) = create_once(&into, "second", 3).await;
    for license in [&license, &other] {
        let answers = from.kept_answers(&license.pool()).await.unwrap();
        assert_eq!(answers.len(), 1, "an answer goes along with its own pool");
        into.adopt_license(license.clone(), &answers, NOW).await.unwrap();
    }
    let (again, effect) = create_once(&into, "first", 1).await;
    assert_eq!((again.id, effect), (license.id, Effect::Replayed));
    let (again, effect) = create_once(&into, "second", 3).await;
    assert_eq!((again.id, effect), (own.id, Effect::Replayed));
}

#[tokio::test]
async fn the_kept_answers_of_a_subscription_arrive_with_the_home() {
    let (_left, from) = ledger().await;
    let (_place, into) = ledger().await;
    let (tenant, user) = subscriber();
    let pool = PoolId::new(PoolKind::Subscriber, tenant, user.as_str());
    let (once, origin) = (Idempotency { key: "once".to_owned(), request_hash: vec![1; 32] }, admin());
    let write = Write { idempotency: Some(&once), ..by(&origin) };
    let first = from.create_subscription(new_subscription("ann", "basic"), write).await.unwrap().value;
    let answers = from.kept_answers(&pool).await.unwrap();
    let terms = terms(&into).await;
    // An arrival that changes nothing brings no answer.
    let late = Arrival { answers: answers.clone(), ..arrival(1, Vec::new()) };
    into.take_home(&arrival(2, Vec::new()), OWN, terms, NOW).await.unwrap();
    into.take_home(&late, OWN, terms, NOW).await.unwrap();
    assert_eq!(into.kept_answers(&pool).await.unwrap(), []);
    into.take_home(&Arrival { answers, ..arrival(3, Vec::new()) }, OWN, terms, NOW).await.unwrap();
    let again = into.create_subscription(new_subscription("ann", "basic"), write).await.unwrap();
    assert_eq!((again.effect, again.value.id), (Effect::Replayed, first.id));
    // The answers go along with the next move as well.
    assert_eq!(into.kept_answers(&pool).await.unwrap().len(), 1);
}

/// Creates a subscription of `ann` if the home is in `home`.
pub(crate) async fn subscribe_at(ledger: &Ledger, home: Option<Region>) -> Result<Subscription, Error> {
    let origin = admin();
    let write = Write { home, ..by(&origin) };
    Ok(ledger.create_subscription(new_subscription("ann", "basic"), write).await?.value)
}

/// Cancels a subscription if the subscriber's home is in `OWN`.
async fn cancel_at_home(ledger: &Ledger, id: SubscriptionId) -> Result<(), Error> {
    let origin = admin();
    let cancel = SubscriptionChange { cancel: true, ..SubscriptionChange::default() };
    let write = Write { home: Some(OWN), ..by(&origin) };
    ledger.update_subscription(&tenant(), id, &cancel, write).await.map(drop)
}

#[tokio::test]
async fn a_subscription_is_written_in_the_home_alone() {
    let (_place, ledger) = ledger().await;
    let (tenant, user) = subscriber();
    let made = subscribe_at(&ledger, Some(OWN)).await.unwrap();
    ledger.assign_home(&tenant, &user, OWN, OWN).await.unwrap();
    ledger.begin_home_move(&tenant, &user, OWN, TARGET).await.unwrap();
    let departure = ledger.home_moving(&tenant, &user).await.unwrap().unwrap();
    for state in [HomeState::Moving, HomeState::Moved] {
        let elsewhere =
            |refused: Error| matches!(refused, Error::HomeElsewhere { home, .. } if home.state == state);
        assert!(elsewhere(cancel_at_home(&ledger, made.id).await.unwrap_err()), "{state:?}");
        assert!(elsewhere(subscribe_at(&ledger, Some(OWN)).await.unwrap_err()), "{state:?}");
        ledger.end_home_move(&departure).await.unwrap();
    }
    // A subscription that comes along with a home is written before the home arrives.
    assert!(matches!(subscribe_at(&ledger, None).await, Err(Error::SubscriptionExists)));
    let (_place, target) = self::ledger().await;
    target.learn_home(&tenant, &user, (OWN, 1), TARGET).await.unwrap();
    assert!(matches!(subscribe_at(&target, Some(TARGET)).await, Err(Error::HomeElsewhere { .. })));
    subscribe_at(&target, None).await.unwrap();
}

/// Returns the plan of `ann`'s active subscription.
async fn active_plan(ledger: &Ledger) -> Option<String> {
    let (tenant, user) = subscriber();
    let entitled = ledger.subscriber(&tenant, &user).await.unwrap().entitled(START, TTL);
    entitled.plan.map(|plan| plan.as_str().to_owned())
}

#[tokio::test]
async fn a_subscription_comes_along_with_a_home_and_a_repeated_arrival_undoes_no_later_change() {
    let (_place, ledger) = ledger().await;
    let (tenant, user) = subscriber();
    let origin = admin();
    let take = async |plan: Option<&str>, arrival: (u64, Option<Region>)| {
        let told = plan.map(|plan| new_subscription("ann", plan));
        ledger.take_subscription((&tenant, &user), told, arrival, by(&origin)).await.unwrap()
    };
    let arrive = async |version| {
        let terms = terms(&ledger).await;
        ledger.take_home(&arrival(version, Vec::new()), OWN, terms, NOW).await.unwrap();
    };
    // The arrival may be cut off before the home is here.
    for (plan, effect) in [
        (Some("basic"), Effect::Changed),
        (Some("basic"), Effect::Unchanged),
        (None, Effect::Changed),
        (None, Effect::Unchanged),
        (Some("basic"), Effect::Changed),
        (Some("premium"), Effect::Changed),
    ] {
        assert_eq!(take(plan, (2, None)).await, effect, "{plan:?}");
        assert_eq!(active_plan(&ledger).await.as_deref(), plan);
    }
    arrive(2).await;
    let active = SubscriptionFilter { status: Some(SubscriptionStatus::Active), ..Default::default() };
    let active = ledger.list_subscriptions(&tenant, &active, NOW, None, 10).await.unwrap();
    cancel_at_home(&ledger, active.items[0].id).await.unwrap();
    assert_eq!(take(Some("premium"), (2, None)).await, Effect::Unchanged);
    assert_eq!(active_plan(&ledger).await, None, "the cancellation goes on");

    // A home on its way out of here is taken back by its adoption alone.
    ledger.begin_home_move(&tenant, &user, OWN, LOST).await.unwrap();
    assert_eq!(take(Some("basic"), (4, None)).await, Effect::Unchanged);
    assert_eq!(take(Some("basic"), (4, Some(TARGET))).await, Effect::Unchanged);
    assert_eq!(take(Some("basic"), (4, Some(LOST))).await, Effect::Changed);
    assert_eq!(active_plan(&ledger).await.as_deref(), Some("basic"));
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
