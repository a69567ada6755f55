//! Clause 1: a session past its expiry ends once, and nothing revives the session.

use seatkeeper_core::rule::{self, Renewal};
use seatkeeper_core::{EndReason, Outcome, Span};

use crate::scene::{TTL, by, devices, every_denying_kind, every_kind, license};

const MOMENT: Span = Span::from_millis(1);

#[test]
fn a_session_is_over_at_its_expiry_and_not_a_moment_before() {
    for mut scene in every_denying_kind(1) {
        scene.claim("ann").admitted();
        scene.now = scene.now + TTL - MOMENT;
        assert_eq!(scene.claim("bob").full(), Some(MOMENT));
        scene.pass(MOMENT);
        scene.claim("bob").ending([("ann", EndReason::Expired)]).admitted();
    }
}

#[test]
fn a_session_that_is_over_expires_rather_than_being_evicted() {
    let mut scene = devices(1);
    scene.claim("ann").admitted();
    scene.pass(TTL);
    scene.claim("bob").ending([("ann", EndReason::Expired)]).admitted();
}

#[test]
fn a_session_that_is_over_makes_room_before_a_live_one_is_evicted() {
    let mut scene = devices(2);
    scene.claim("ann").admitted();
    scene.pass(MOMENT);
    scene.claim("bob").admitted();
    scene.now = scene.now + TTL - MOMENT;
    scene.claim("cid").ending([("ann", EndReason::Expired)]).admitted();
    assert_eq!(scene.holders(), ["bob", "cid"]);
}

#[test]
fn a_session_that_is_over_makes_room_although_another_was_named_to_go() {
    let mut scene = devices(2);
    scene.claim("ann").admitted();
    scene.pass(MOMENT);
    let bob = scene.claim("bob").admitted();
    scene.now = scene.now + TTL - MOMENT;
    scene.ask(by("cid").replacing(bob)).ending([("ann", EndReason::Expired)]).admitted();
    assert_eq!(scene.holders(), ["bob", "cid"]);
}

#[test]
fn naming_a_session_that_is_over_does_not_refresh_it() {
    for mut scene in every_kind(1) {
        let first = scene.claim("ann").admitted();
        scene.pass(TTL);
        let second = scene.ask(by("ann").naming(first)).ending([("ann", EndReason::Expired)]).admitted();
        assert_ne!(first, second);
    }
}

#[test]
fn a_holder_whose_session_is_over_is_a_newcomer() {
    for mut scene in every_kind(1) {
        scene.claim("ann").admitted();
        scene.pass(TTL);
        scene.ask(by("ann").tier(3)).ending([("ann", EndReason::Expired)]).admitted();
    }
}

#[test]
fn a_holder_whose_session_is_over_may_find_the_pool_full() {
    let mut scene = license(1);
    scene.claim("ann").admitted();
    scene.pass(TTL);
    scene.claim("bob").ending([("ann", EndReason::Expired)]).admitted();
    scene.claim("ann").full();
}

#[test]
fn the_end_of_the_entitlement_comes_before_the_ttl() {
    for mut scene in every_denying_kind(1) {
        let ends_at = scene.now + Span::from_secs(10);
        scene.next_claim_brings(|terms| terms.ends_at = Some(ends_at));
        let ann = scene.claim("ann").admitted();
        let session = scene.pool.get(ann).expect("ann is in");
        assert_eq!(scene.pool.expiry_of(session), ends_at);
        scene.now = ends_at - MOMENT;
        assert_eq!(scene.claim("bob").full(), Some(MOMENT));
        scene.now = ends_at;
        let gone = rule::forget_over(&mut scene.pool, scene.now);
        assert_eq!(gone.len(), 1);
        assert_eq!((gone[0].reason, gone[0].expires), (EndReason::Expired, ends_at));
    }
}

#[test]
fn the_ttl_comes_before_a_later_end_of_the_entitlement() {
    let mut scene = license(1);
    let ends_at = scene.now + Span::from_secs(61);
    scene.next_claim_brings(|terms| terms.ends_at = Some(ends_at));
    scene.claim("ann").admitted();
    scene.pass(TTL);
    scene.claim("bob").ending([("ann", EndReason::Expired)]).admitted();
}

#[test]
fn a_session_expires_once() {
    let mut scene = license(1);
    scene.claim("ann").admitted();
    scene.pass(TTL);
    assert_eq!(rule::forget_over(&mut scene.pool, scene.now).len(), 1);
    assert!(rule::forget_over(&mut scene.pool, scene.now).is_empty());
    scene.claim("bob").admitted();
}

#[test]
fn nothing_is_forgotten_while_nothing_is_over() {
    let mut scene = license(2);
    scene.claim("ann").admitted();
    scene.now = scene.now + TTL - MOMENT;
    assert!(rule::forget_over(&mut scene.pool, scene.now).is_empty());
    assert_eq!(scene.holders(), ["ann"]);
}

#[test]
fn a_heartbeat_in_the_last_moment_renews() {
    let mut scene = license(1);
    let ann = scene.claim("ann").admitted();
    scene.now = scene.now + TTL - MOMENT;
    assert_eq!(scene.heartbeat(ann), Renewal::Renewed);
    scene.now = scene.now + TTL - MOMENT;
    scene.claim("bob").full();
}

#[test]
fn a_heartbeat_after_the_expiry_is_told_so_and_brings_nothing_back() {
    for mut scene in every_kind(1) {
        let ann = scene.claim("ann").admitted();
        let heard = scene.now;
        scene.pass(TTL);
        let Renewal::Over(ending) = scene.heartbeat(ann) else { panic!("a session that was over lives on") };
        assert_eq!((ending.session.id, ending.reason), (ann, EndReason::Expired));
        assert_eq!((ending.session.last_heartbeat, ending.expires), (heard, heard + TTL));
        assert_eq!(scene.heartbeat(ann), Renewal::Missing);
        assert!(scene.pool.is_empty());
    }
}

#[test]
fn a_heartbeat_ends_nobody_elses_session() {
    let mut scene = license(2);
    scene.claim("ann").admitted();
    scene.pass(MOMENT);
    let bob = scene.claim("bob").admitted();
    scene.now = scene.now + TTL - MOMENT;
    assert_eq!(scene.heartbeat(bob), Renewal::Renewed);
    scene.claim("bob").ending([("ann", EndReason::Expired)]).is(Outcome::Resumed(bob));
}

#[test]
fn a_shorter_ttl_binds_a_session_from_its_next_renewal_on() {
    let mut scene = license(1);
    let ann = scene.claim("ann").admitted();
    scene.revise(|terms| terms.ttl = Span::from_secs(10));
    scene.now = scene.now + TTL - MOMENT;
    assert_eq!(scene.heartbeat(ann), Renewal::Renewed);
    scene.pass(Span::from_secs(10));
    scene.claim("bob").ending([("ann", EndReason::Expired)]).admitted();
}

#[test]
fn a_longer_ttl_binds_a_session_from_its_next_renewal_on() {
    let mut scene = license(2);
    scene.claim("ann").admitted();
    let bob = scene.claim("bob").admitted();
    scene.revise(|terms| terms.ttl = Span::from_secs(120));
    scene.now = scene.now + TTL - MOMENT;
    assert_eq!(scene.heartbeat(bob), Renewal::Renewed);
    scene.pass(MOMENT);
    assert_eq!(rule::forget_over(&mut scene.pool, scene.now).len(), 1);
    scene.now = scene.now + Span::from_secs(120) - MOMENT - MOMENT;
    assert_eq!(scene.heartbeat(bob), Renewal::Renewed);
}

#[test]
fn sessions_of_different_ttls_each_keep_their_own_expiry() {
    let mut scene = license(3);
    scene.claim("slow").admitted();
    scene.next_claim_brings(|terms| terms.ttl = Span::from_secs(10));
    scene.claim("quick").admitted();
    scene.pass(Span::from_secs(10));
    scene.claim("new").ending([("quick", EndReason::Expired)]).admitted();
    assert_eq!(scene.holders(), ["new", "slow"]);
}

#[test]
fn an_extended_entitlement_does_not_bring_back_what_was_over() {
    let mut scene = license(1);
    let ends_at = scene.now + Span::from_secs(10);
    scene.next_claim_brings(|terms| terms.ends_at = Some(ends_at));
    let ann = scene.claim("ann").admitted();
    scene.now = ends_at;
    scene.next_claim_brings(|terms| terms.ends_at = None);
    let again = scene.ask(by("ann").naming(ann)).ending([("ann", EndReason::Expired)]).admitted();
    assert_ne!(again, ann);
}

#[test]
fn a_shortened_entitlement_is_over_for_those_who_are_in() {
    let mut scene = license(2);
    scene.claim("ann").admitted();
    let now = scene.now;
    assert_eq!(scene.revise(|terms| terms.ends_at = Some(now)), [("ann".to_owned(), EndReason::Expired)]);
}
