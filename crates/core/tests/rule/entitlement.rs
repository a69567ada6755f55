//! Terms: versions, the end of an entitlement, and suspended or revoked entitlements.

use seatkeeper_core::rule::{self, Renewal};
use seatkeeper_core::{Denial, EndReason, Outcome, PoolKind, Seats, Span, Standing, Terms};

use crate::scene::{Scene, TTL, by, devices, every_kind, license};

#[test]
fn newer_terms_replace_older_ones() {
    let mut scene = license(1);
    scene.claim("ann").admitted();
    scene.next_claim_brings(|terms| terms.limit = Seats(2));
    scene.claim("bob").admitted();
    assert_eq!(scene.pool.terms(), scene.policy.terms);
}

#[test]
fn older_terms_never_replace_newer_ones() {
    let mut scene = license(1);
    let old = scene.policy.terms.map(|terms| Terms { limit: Seats(9), ..terms });
    scene.revise(|terms| terms.limit = Seats(1));
    let newer = scene.pool.terms();
    scene.policy.terms = old;
    scene.claim("ann").admitted();
    scene.claim("bob").full();
    assert_eq!(scene.pool.terms(), newer);
}

#[test]
fn terms_of_the_same_version_change_nothing_but_the_ttl() {
    let mut scene = license(1);
    let known = scene.pool.terms().expect("known");
    let (ends_at, ttl) = (Some(scene.now), Span::from_secs(20));
    scene.policy.terms = Some(Terms { limit: Seats(9), ends_at, ttl, standing: Standing::Closed, ..known });
    scene.claim("ann").admitted();
    scene.claim("bob").full();
    assert_eq!(scene.pool.terms(), Some(Terms { ttl, ..known }));
}

#[test]
fn a_ttl_of_the_same_version_counts_from_the_next_claim_on() {
    for ttl in [20, 600].map(Span::from_secs) {
        let mut scene = license(2);
        let ann = scene.claim("ann").admitted();
        scene.policy.terms = scene.pool.terms().map(|terms| Terms { ttl, ..terms });
        assert_eq!(scene.heartbeat(ann), Renewal::Renewed);
        let expiry =
            |scene: &Scene, id| scene.pool.expiry_of(scene.pool.get(id).expect("the session is live"));
        assert_eq!(expiry(&scene, ann), scene.now + TTL, "no claim has brought the TTL yet");
        let bob = scene.claim("bob").admitted();
        assert_eq!(expiry(&scene, bob), scene.now + ttl);
        assert_eq!(expiry(&scene, ann), scene.now + TTL, "a claim changes no other session");
        assert_eq!(scene.heartbeat(ann), Renewal::Renewed);
        assert_eq!(expiry(&scene, ann), scene.now + ttl);
    }
}

#[test]
fn a_ttl_of_an_older_version_changes_nothing() {
    let mut scene = license(1);
    let old = scene.pool.terms().map(|terms| Terms { ttl: Span::from_secs(20), ..terms });
    scene.revise(|terms| terms.limit = Seats(2));
    let newer = scene.pool.terms();
    scene.policy.terms = old;
    scene.claim("ann").admitted();
    assert_eq!(scene.pool.terms(), newer);
    assert_eq!(scene.pool.next_expiry(), Some(scene.now + TTL));
}

#[test]
fn a_pool_that_knew_nothing_learns_terms_of_any_version() {
    let mut scene = license(2).of_which_nothing_is_known();
    scene.policy.terms = license(2).policy.terms.map(|terms| Terms { version: 0, ..terms });
    scene.claim("ann").admitted();
    scene.claim("bob").admitted();
    assert_eq!(scene.pool.terms(), scene.policy.terms);
}

#[test]
fn a_suspended_entitlement_ends_its_sessions_at_once() {
    for mut scene in every_kind(2) {
        scene.claim("ann").admitted();
        scene.claim("bob").admitted();
        let mut ended = scene.revise(|terms| terms.standing = Standing::Closed);
        ended.sort();
        let ends = ["ann", "bob"].map(|who| (who.to_owned(), EndReason::EntitlementEnded));
        assert_eq!(ended, ends);
        assert!(scene.pool.is_empty());
    }
}

#[test]
fn a_suspended_entitlement_admits_nobody() {
    for mut scene in every_kind(2) {
        let ann = scene.claim("ann").admitted();
        scene.next_claim_brings(|terms| terms.standing = Standing::Closed);
        scene
            .ask(by("ann").naming(ann))
            .ending([("ann", EndReason::EntitlementEnded)])
            .is(Outcome::Denied(Denial::EntitlementClosed));
        scene.claim("bob").is(Outcome::Denied(Denial::EntitlementClosed));
    }
}

#[test]
fn what_was_over_when_the_entitlement_was_suspended_ends_as_expired() {
    let mut scene = license(2);
    scene.claim("ann").admitted();
    scene.pass(Span::from_secs(30));
    scene.claim("bob").admitted();
    scene.pass(Span::from_secs(30));
    let ended = scene.revise(|terms| terms.standing = Standing::Closed);
    let ends = [("ann", EndReason::Expired), ("bob", EndReason::EntitlementEnded)];
    assert_eq!(ended, ends.map(|(who, why)| (who.to_owned(), why)));
}

#[test]
fn older_terms_do_not_reopen_a_suspended_entitlement() {
    let mut scene = license(1);
    let open = scene.policy.terms;
    scene.revise(|terms| terms.standing = Standing::Closed);
    scene.policy.terms = open;
    scene.claim("ann").is(Outcome::Denied(Denial::EntitlementClosed));
}

#[test]
fn a_suspension_holds_while_the_entitlement_is_out_of_reach() {
    let mut scene = devices(1);
    scene.revise(|terms| terms.standing = Standing::Closed);
    scene.entitlement_is_out_of_reach();
    scene.claim("ann").is(Outcome::Denied(Denial::EntitlementClosed));
}

#[test]
fn an_entitlement_that_was_reopened_admits_again() {
    let mut scene = license(1);
    scene.revise(|terms| terms.standing = Standing::Closed);
    scene.next_claim_brings(|terms| terms.standing = Standing::Open);
    scene.claim("ann").admitted();
}

#[test]
fn terms_that_close_what_is_closed_already_still_end_what_was_restored() {
    let mut scene = license(1);
    let ann = scene.claim("ann").admitted();
    let session = scene.pool.get(ann).cloned().expect("ann is in");
    scene.revise(|terms| terms.standing = Standing::Closed);
    let closed = scene.pool.terms().expect("known");
    rule::restore(&mut scene.pool, PoolKind::License, session, scene.now);
    let ended = rule::revise(&mut scene.pool, closed, scene.now);
    assert_eq!(ended.len(), 1);
    assert_eq!(ended[0].reason, EndReason::EntitlementEnded);
}

#[test]
fn an_entitlement_past_its_end_admits_nobody() {
    for mut scene in every_kind(2) {
        let ends_at = scene.now + Span::from_secs(5);
        scene.next_claim_brings(|terms| terms.ends_at = Some(ends_at));
        let ann = scene.claim("ann").admitted();
        scene.now = ends_at;
        let over = Outcome::Denied(Denial::EntitlementOver { ended_at: ends_at });
        scene.ask(by("ann").naming(ann)).ending([("ann", EndReason::Expired)]).is(over);
        scene.claim("bob").is(over);
    }
}

#[test]
fn an_entitlement_admits_until_the_moment_of_its_end() {
    let mut scene = license(1);
    let ends_at = scene.now + Span::from_millis(1);
    scene.next_claim_brings(|terms| terms.ends_at = Some(ends_at));
    scene.claim("ann").admitted();
    assert_eq!(scene.pool.next_expiry(), Some(ends_at));
}

#[test]
fn a_suspended_entitlement_past_its_end_is_told_as_suspended() {
    let mut scene = license(1);
    let now = scene.now;
    scene.next_claim_brings(|terms| {
        terms.standing = Standing::Closed;
        terms.ends_at = Some(now);
    });
    scene.claim("ann").is(Outcome::Denied(Denial::EntitlementClosed));
}

#[test]
fn revised_terms_that_are_older_end_only_what_is_over() {
    let mut scene = license(2);
    scene.claim("ann").admitted();
    let old = scene.pool.terms().expect("known");
    scene.revise(|terms| terms.limit = Seats(3));
    let closed = Terms { standing: Standing::Closed, ..old };
    assert!(rule::revise(&mut scene.pool, closed, scene.now).is_empty());
    assert_eq!(scene.holders(), ["ann"]);
    scene.pass(TTL);
    assert_eq!(rule::revise(&mut scene.pool, closed, scene.now).len(), 1);
}
