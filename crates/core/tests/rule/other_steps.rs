//! Heartbeat, end and restoration of single sessions.

use seatkeeper_core::rule::{self, Renewal};
use seatkeeper_core::{EndReason, Outcome, Pool, PoolKind, Session, Span};

use crate::scene::{TTL, a_session_id, by, capacity, every_kind, license, told};

#[test]
fn a_heartbeat_renews_one_session_for_the_ttl_of_today() {
    let mut scene = license(2);
    let ann = scene.claim("ann").admitted();
    let bob = scene.claim("bob").admitted();
    scene.revise(|terms| terms.ttl = Span::from_secs(90));
    scene.pass(Span::from_secs(10));
    assert_eq!(scene.heartbeat(ann), Renewal::Renewed);
    let expiry = |id| scene.pool.expiry_of(scene.pool.get(id).expect("it is in"));
    assert_eq!(expiry(ann), scene.now + Span::from_secs(90));
    assert_eq!(expiry(bob), scene.now + Span::from_secs(50));
}

#[test]
fn a_heartbeat_shortens_the_ttl_only_of_a_holder_that_is_told_so() {
    let shorter = Span::from_secs(20);
    for (kind, kept) in [(PoolKind::License, shorter), (PoolKind::Subscriber, TTL), (PoolKind::Group, TTL)] {
        let mut scene = license(1);
        let ann = scene.claim("ann").admitted();
        scene.revise(|terms| terms.ttl = shorter);
        assert_eq!(scene.heartbeat_of(kind, ann), Renewal::Renewed);
        assert_eq!(scene.pool.next_expiry(), Some(scene.now + kept), "{kind}");
        scene.claim("ann");
        assert_eq!(
            scene.pool.next_expiry(),
            Some(scene.now + shorter),
            "the answer to a claim tells the interval"
        );
    }
}

#[test]
fn a_session_with_several_users_keeps_a_longer_ttl_until_one_is_left() {
    let shorter = Span::from_secs(20);
    let mut scene = license(1);
    let session = scene.ask(by("machine").user("ann")).admitted();
    scene.revise(|terms| terms.ttl = shorter);
    scene.ask(by("machine").user("bob")).is(Outcome::Resumed(session));
    assert_eq!(scene.pool.next_expiry(), Some(scene.now + TTL), "ann was not told");
    assert_eq!(scene.heartbeat(session), Renewal::Renewed);
    assert_eq!(scene.pool.next_expiry(), Some(scene.now + TTL));
    assert!(rule::leave(&mut scene.pool, session, &"bob".into(), scene.now));
    assert_eq!(scene.heartbeat(session), Renewal::Renewed);
    assert_eq!(scene.pool.next_expiry(), Some(scene.now + shorter));
}

#[test]
fn a_heartbeat_without_known_terms_keeps_the_ttl() {
    let mut scene = license(1).of_which_nothing_is_known();
    let ann = scene.claim("ann").admitted();
    scene.pass(Span::from_secs(1));
    assert_eq!(scene.heartbeat(ann), Renewal::Renewed);
    assert_eq!(scene.pool.next_expiry(), Some(scene.now + crate::scene::TTL_DEFAULT));
}

#[test]
fn a_heartbeat_that_comes_with_an_earlier_time_takes_nothing_away() {
    let mut scene = license(1);
    let ann = scene.claim("ann").admitted();
    let expiry = scene.pool.next_expiry();
    scene.now = scene.now - Span::from_secs(30);
    assert_eq!(scene.heartbeat(ann), Renewal::Renewed);
    assert_eq!(scene.pool.next_expiry(), expiry);
}

#[test]
fn a_heartbeat_of_a_session_that_never_was_finds_nothing() {
    let mut scene = license(1);
    let nowhere = scene.fresh_id();
    assert_eq!(scene.heartbeat(nowhere), Renewal::Missing);
}

#[test]
fn a_session_ends_for_the_reason_given_and_ends_once() {
    for mut scene in every_kind(2) {
        let ann = scene.claim("ann").admitted();
        scene.claim("bob").admitted();
        scene.pass(Span::from_secs(1));
        let ending = rule::end(&mut scene.pool, ann, EndReason::Released, scene.now).expect("ann is in");
        assert_eq!((ending.session.id, ending.reason), (ann, EndReason::Released));
        assert_eq!(ending.expires, scene.now + Span::from_secs(59));
        assert_eq!(rule::end(&mut scene.pool, ann, EndReason::Released, scene.now), None);
        assert_eq!(scene.holders(), ["bob"]);
    }
}

#[test]
fn a_session_that_was_over_ends_as_expired_whatever_was_asked() {
    let mut scene = license(1);
    let ann = scene.claim("ann").admitted();
    scene.pass(TTL);
    let ending = rule::end(&mut scene.pool, ann, EndReason::Revoked, scene.now).expect("ann is in");
    assert_eq!((ending.reason, ending.expires), (EndReason::Expired, scene.now));
}

#[test]
fn a_restored_session_gets_one_full_ttl() {
    let mut scene = license(1);
    let ann = scene.claim("ann").admitted();
    let session = scene.pool.get(ann).cloned().expect("ann is in");
    let mut rebuilt = Pool::new(scene.pool.terms());
    scene.pass(TTL);
    scene.pass(TTL);
    rule::restore(&mut rebuilt, PoolKind::License, session.clone(), scene.now);
    let restored = rebuilt.get(ann).expect("it is back");
    assert_eq!(*restored, Session { last_heartbeat: scene.now, ..session });
    assert_eq!(rebuilt.next_expiry(), Some(scene.now + TTL));
}

#[test]
fn a_restored_session_that_has_no_heartbeats_keeps_its_end() {
    let mut scene = capacity();
    let ann = scene.claim("ann").admitted();
    let session = scene.pool.get(ann).cloned().expect("ann is in");
    scene.pass(Span::from_secs(59));
    let today = scene.changed(|terms| terms.ttl = Span::from_secs(5));
    let mut rebuilt = Pool::new(Some(today));
    rule::restore(&mut rebuilt, PoolKind::Capacity, session.clone(), scene.now);
    assert_eq!(rebuilt.get(ann), Some(&session));
    assert_eq!(rebuilt.next_expiry(), Some(scene.now + Span::from_secs(1)));
}

#[test]
fn a_restored_session_gets_the_longer_of_its_ttl_and_the_ttl_of_today() {
    let mut scene = license(1);
    let ann = scene.claim("ann").admitted();
    let session = scene.pool.get(ann).cloned().expect("ann is in");

    for (today, restored) in [(Span::from_secs(5), TTL), (Span::from_secs(600), Span::from_secs(600))] {
        let today = scene.changed(|terms| terms.ttl = today);
        let mut rebuilt = Pool::new(Some(today));
        rule::restore(&mut rebuilt, PoolKind::License, session.clone(), scene.now);
        assert_eq!(rebuilt.next_expiry(), Some(scene.now + restored));
    }

    let mut rebuilt = Pool::new(None);
    rule::restore(&mut rebuilt, PoolKind::License, session, scene.now);
    assert_eq!(rebuilt.next_expiry(), Some(scene.now + TTL));
}

#[test]
fn every_session_gets_one_full_ttl_when_the_registry_goes_on() {
    let mut scene = license(2);
    let (ann, bob) = (scene.claim("ann").admitted(), scene.claim("bob").admitted());
    scene.pass(TTL);
    scene.pass(TTL);
    let longer = scene.changed(|terms| terms.ttl = Span::from_secs(600));
    let mut pool = Pool::in_view(Some(longer), scene.pool.iter().cloned(), Default::default());
    rule::resume(&mut pool, PoolKind::License, scene.now);
    for id in [ann, bob] {
        let session = pool.get(id).expect("the session goes on");
        assert_eq!((session.last_heartbeat, session.ttl), (scene.now, Span::from_secs(600)));
    }
    assert_eq!(pool.next_expiry(), Some(scene.now + Span::from_secs(600)));
}

#[test]
fn a_session_without_heartbeats_keeps_its_end_when_the_registry_goes_on() {
    let mut scene = capacity();
    let ann = scene.claim("ann").admitted();
    let before = scene.pool.get(ann).cloned();
    scene.pass(Span::from_secs(59));
    rule::resume(&mut scene.pool, PoolKind::Capacity, scene.now);
    assert_eq!(scene.pool.get(ann), before.as_ref());
}

#[test]
fn a_session_is_restored_once_and_never_beside_its_holders_own() {
    let mut scene = license(3);
    let ann = scene.claim("ann").admitted();
    let session = scene.pool.get(ann).cloned().expect("ann is in");
    scene.pass(Span::from_secs(1));

    rule::restore(&mut scene.pool, PoolKind::License, session.clone(), scene.now);
    let twin_by_holder = Session { id: a_session_id(1), ..session.clone() };
    rule::restore(&mut scene.pool, PoolKind::License, twin_by_holder, scene.now);
    let twin_by_id = Session { holder: "bob".into(), ..session.clone() };
    rule::restore(&mut scene.pool, PoolKind::License, twin_by_id, scene.now);

    assert_eq!(scene.pool.iter().collect::<Vec<_>>(), [&session]);
}

#[test]
fn a_pool_can_be_emptied_for_one_reason_and_what_was_over_ends_as_expired() {
    let mut scene = license(3);
    scene.claim("ann").admitted();
    scene.pass(Span::from_secs(1));
    scene.claim("bob").admitted();
    scene.claim("cid").admitted();
    scene.pass(Span::from_secs(59));
    let mut ended = told(&rule::end_all(&mut scene.pool, EndReason::Revoked, scene.now));
    ended.sort();
    let ends = [("ann", EndReason::Expired), ("bob", EndReason::Revoked), ("cid", EndReason::Revoked)];
    assert_eq!(ended, ends.map(|(who, why)| (who.to_owned(), why)));
    assert!(scene.pool.is_empty());
    assert!(rule::end_all(&mut scene.pool, EndReason::Revoked, scene.now).is_empty());
}
