//! Clause 2: a claim that names the holder's own session refreshes the session.

use seatkeeper_core::{EndReason, Outcome, Span};

use crate::scene::{TTL, by, capacity, devices, every_kind, license};

#[test]
fn the_holders_own_session_is_refreshed() {
    for mut scene in every_kind(2) {
        let ann = scene.claim("ann").admitted();
        scene.pass(Span::from_secs(59));
        scene.ask(by("ann").naming(ann)).is(Outcome::Refreshed(ann));
        let session = scene.pool.get(ann).expect("ann is in");
        assert_eq!(session.last_heartbeat, scene.now);
        assert_eq!(session.started, scene.now - Span::from_secs(59));
        assert_eq!(scene.pool.expiry_of(session), scene.now + TTL);
    }
}

#[test]
fn being_named_goes_before_what_the_policy_does_to_a_holder() {
    for mut scene in every_kind(1) {
        let ann = scene.claim("ann").admitted();
        scene.ask(by("ann").tier(3).naming(ann)).is(Outcome::Refreshed(ann));
    }
}

#[test]
fn being_named_goes_before_a_lowered_limit() {
    for mut scene in every_kind(2) {
        scene.claim("bob").admitted();
        let ann = scene.claim("ann").admitted();
        for limit in [1, 0] {
            scene.lower_the_limit_to(limit);
            scene.ask(by("ann").naming(ann)).is(Outcome::Refreshed(ann));
        }
        assert_eq!(scene.holders(), ["ann", "bob"]);
    }
}

#[test]
fn being_named_goes_before_a_replacement() {
    let mut scene = devices(2);
    let bob = scene.claim("bob").admitted();
    let ann = scene.claim("ann").admitted();
    scene.ask(by("ann").naming(ann).replacing(bob)).is(Outcome::Refreshed(ann));
    assert_eq!(scene.holders(), ["ann", "bob"]);
}

#[test]
fn a_session_is_refreshed_while_the_entitlement_is_out_of_reach() {
    for mut scene in every_kind(1) {
        let ann = scene.claim("ann").admitted();
        scene.entitlement_is_out_of_reach();
        scene.ask(by("ann").naming(ann)).is(Outcome::Refreshed(ann));
    }
}

#[test]
fn a_session_shown_by_another_holder_counts_for_nothing() {
    let mut scene = license(1);
    let ann = scene.claim("ann").admitted();
    scene.pass(Span::from_secs(1));
    scene.ask(by("eve").naming(ann)).full();
    let session = scene.pool.get(ann).expect("ann is in");
    assert_eq!(session.last_heartbeat, scene.now - Span::from_secs(1));
    assert!(!session.users.contains(&"eve".into()));
}

#[test]
fn a_stolen_session_does_not_keep_its_thief_from_evicting_as_anyone_would() {
    let mut scene = devices(1);
    let ann = scene.claim("ann").admitted();
    scene.ask(by("eve").naming(ann)).ending([("ann", EndReason::Evicted)]).admitted();
}

#[test]
fn a_holder_that_names_anothers_session_is_told_of_its_own() {
    let mut scene = license(2);
    let bob = scene.claim("bob").admitted();
    let ann = scene.claim("ann").admitted();
    scene.ask(by("ann").naming(bob)).is(Outcome::Resumed(ann));

    let mut scene = capacity();
    let ann = scene.claim("ann").admitted();
    let elsewhere = scene.fresh_id();
    scene.ask(by("ann").naming(elsewhere)).is(Outcome::Existing(ann));
}

#[test]
fn a_device_that_names_a_session_it_lost_is_superseded_as_if_it_named_none() {
    let mut scene = devices(1);
    let first = scene.claim("ann").admitted();
    let second = scene.claim("ann").ending([("ann", EndReason::Superseded)]).admitted();
    let third = scene.ask(by("ann").naming(first)).ending([("ann", EndReason::Superseded)]).admitted();
    assert_ne!(second, third);
}

#[test]
fn a_device_is_refreshed_on_whatever_network_it_shows_its_session() {
    let (at_home, on_the_road) = ("tablet-home", "tablet-road");
    let mut scene = devices(2);
    let tablet = scene.claim(at_home).admitted();
    scene.pass(Span::from_secs(1));
    scene.ask(by(on_the_road).naming(tablet)).is(Outcome::Refreshed(tablet));
    assert_eq!(scene.holders(), [at_home], "it holds what it held");
    scene.ask(by("phone-road").naming(tablet)).admitted();

    let mut scene = license(1);
    let first = scene.claim("host-1").admitted();
    scene.ask(by("host-2").naming(first)).full();
}

#[test]
fn naming_a_session_that_never_was_counts_for_nothing() {
    for mut scene in every_kind(1) {
        let nowhere = scene.fresh_id();
        scene.ask(by("ann").naming(nowhere)).admitted();
    }
}

#[test]
fn a_user_that_refreshes_a_session_shares_it() {
    let mut scene = license(1);
    let session = scene.ask(by("machine").user("ann")).admitted();
    scene.ask(by("machine").user("bob").naming(session)).is(Outcome::Refreshed(session));
    let users = &scene.pool.get(session).expect("it is in").users;
    assert!(users.contains(&"ann".into()) && users.contains(&"bob".into()));
}

#[test]
fn a_refreshed_session_takes_over_the_ttl_of_today() {
    let mut scene = license(1);
    let ann = scene.claim("ann").admitted();
    scene.next_claim_brings(|terms| terms.ttl = Span::from_secs(5));
    scene.ask(by("ann").naming(ann)).is(Outcome::Refreshed(ann));
    assert_eq!(scene.pool.next_expiry(), Some(scene.now + Span::from_secs(5)));
}
