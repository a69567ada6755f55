//! Clause 3: the holder already has a live session, and is never told that the pool is full.

use seatkeeper_core::{EndReason, Outcome, Span, Tier};

use crate::scene::{TTL, by, capacity, devices, devices_that_deny, every_kind, license};

#[test]
fn one_machine_takes_one_seat() {
    let mut scene = license(2);
    let first = scene.claim("ann").admitted();
    scene.pass(Span::from_secs(59));
    scene.claim("ann").is(Outcome::Resumed(first));
    assert_eq!(scene.pool.live(), 1);
    assert_eq!(scene.pool.next_expiry(), Some(scene.now + TTL));
}

#[test]
fn another_user_of_the_machine_shares_its_session() {
    let mut scene = license(1);
    let session = scene.ask(by("machine").user("ann")).admitted();
    scene.ask(by("machine").user("bob")).is(Outcome::Resumed(session));
    let users = &scene.pool.get(session).expect("it is in").users;
    assert_eq!(users.first(), &"ann".into());
    assert!(users.contains(&"bob".into()));
}

#[test]
fn a_resumed_session_takes_over_the_ttl_of_today() {
    let mut scene = license(1);
    scene.claim("ann").admitted();
    scene.next_claim_brings(|terms| terms.ttl = Span::from_secs(5));
    scene.claim("ann");
    assert_eq!(scene.pool.next_expiry(), Some(scene.now + Span::from_secs(5)));
}

#[test]
fn a_device_that_comes_back_takes_its_seat_anew() {
    for mut scene in [devices(2), devices_that_deny(2)] {
        let first = scene.claim("ann").admitted();
        scene.pass(Span::from_secs(1));
        let second = scene.claim("ann").ending([("ann", EndReason::Superseded)]).admitted();
        assert_ne!(first, second);
        assert_eq!(scene.pool.live(), 1);
        assert_eq!(scene.pool.get(second).expect("it is in").started, scene.now);
    }
}

#[test]
fn a_copied_device_identity_throws_the_other_out() {
    let mut scene = devices(1);
    let own = scene.claim("tv").admitted();
    let copy = scene.claim("tv").ending([("tv", EndReason::Superseded)]).admitted();
    let own_again = scene.ask(by("tv").naming(own)).ending([("tv", EndReason::Superseded)]).admitted();
    scene.ask(by("tv").naming(copy)).ending([("tv", EndReason::Superseded)]).admitted();
    assert!(scene.pool.get(own_again).is_none());
}

#[test]
fn a_higher_tier_replaces_a_lower_one() {
    for (held, asked) in [(1, 2), (1, 3), (2, 3)] {
        let mut scene = capacity();
        scene.ask(by("ann").tier(held)).admitted();
        let new = scene.ask(by("ann").tier(asked)).ending([("ann", EndReason::Upgraded)]).admitted();
        assert_eq!(scene.pool.get(new).expect("it is in").tier, Tier(asked));
        assert_eq!(scene.pool.live(), 1);
    }
}

#[test]
fn the_same_or_a_lower_tier_changes_nothing() {
    for (held, asked) in [(1, 1), (2, 2), (3, 3), (2, 1), (3, 1), (3, 2)] {
        let mut scene = capacity();
        let first = scene.ask(by("ann").tier(held)).admitted();
        let before = scene.pool.get(first).cloned().expect("it is in");
        scene.pass(Span::from_secs(1));
        scene.ask(by("ann").user("other").tier(asked)).is(Outcome::Existing(first));
        assert_eq!(scene.pool.get(first), Some(&before), "nor does it become that of whoever asked");
    }
}

#[test]
fn a_tier_means_nothing_where_nothing_is_upgraded() {
    let mut scene = license(1);
    let ann = scene.ask(by("ann").tier(1)).admitted();
    scene.ask(by("ann").tier(3)).is(Outcome::Resumed(ann));
    assert_eq!(scene.pool.get(ann).expect("it is in").tier, Tier(1));
}

#[test]
fn a_holder_is_never_told_that_the_pool_is_full() {
    for mut scene in every_kind(2) {
        scene.claim("ann").admitted();
        scene.claim("bob").admitted();
        for limit in [2, 1, 0] {
            scene.lower_the_limit_to(limit);
            for holder in ["ann", "bob"] {
                let claimed = if scene.holders().contains(&holder) { scene.claim(holder) } else { continue };
                assert!(!matches!(claimed.decision.outcome, Outcome::Denied(_)), "limit {limit}: {holder}");
            }
        }
    }
}

#[test]
fn a_holder_goes_on_in_a_full_pool_and_ends_nobody_else() {
    let mut scene = license(2);
    let ann = scene.claim("ann").admitted();
    scene.claim("bob").admitted();
    scene.claim("ann").is(Outcome::Resumed(ann));

    for mut scene in [devices(2), devices_that_deny(2)] {
        scene.claim("ann").admitted();
        scene.claim("bob").admitted();
        scene.claim("bob").ending([("bob", EndReason::Superseded)]).admitted();
    }

    let mut scene = capacity();
    let ann = scene.claim("ann").admitted();
    scene.claim("ann").is(Outcome::Existing(ann));
}

#[test]
fn a_holder_that_comes_back_replaces_nobody() {
    let mut scene = devices(2);
    let ann = scene.claim("ann").admitted();
    scene.claim("bob").admitted();
    scene.ask(by("bob").replacing(ann)).ending([("bob", EndReason::Superseded)]).admitted();
    assert_eq!(scene.holders(), ["ann", "bob"]);

    let mut scene = license(2);
    let ann = scene.claim("ann").admitted();
    let bob = scene.claim("bob").admitted();
    scene.ask(by("bob").replacing(ann)).is(Outcome::Resumed(bob));
}

#[test]
fn a_machine_resumes_above_a_lowered_limit_and_ends_nobody() {
    let mut scene = license(3);
    let ann = scene.claim("ann").admitted();
    scene.claim("bob").admitted();
    scene.claim("cid").admitted();
    scene.lower_the_limit_to(1);
    scene.claim("ann").is(Outcome::Resumed(ann));
    assert_eq!(scene.holders(), ["ann", "bob", "cid"]);
}

#[test]
fn a_device_that_comes_back_above_a_lowered_limit_brings_the_pool_within_it() {
    let mut scene = devices(4);
    for device in ["ann", "bob", "cid", "dan"] {
        scene.claim(device).admitted();
        scene.pass(Span::from_secs(1));
    }
    scene.lower_the_limit_to(2);
    let ends = [("cid", EndReason::Superseded), ("ann", EndReason::Evicted), ("bob", EndReason::Evicted)];
    scene.claim("cid").ending(ends).admitted();
    assert_eq!(scene.holders(), ["cid", "dan"]);
}

#[test]
fn a_device_that_comes_back_at_the_lowered_limit_evicts_nobody() {
    let mut scene = devices(4);
    scene.claim("ann").admitted();
    scene.claim("bob").admitted();
    scene.lower_the_limit_to(2);
    scene.claim("ann").ending([("ann", EndReason::Superseded)]).admitted();
    assert_eq!(scene.holders(), ["ann", "bob"]);
}

#[test]
fn a_device_keeps_its_session_where_a_new_one_would_be_above_the_limit() {
    let mut scene = devices_that_deny(2);
    let ann = scene.claim("ann").admitted();
    scene.claim("bob").admitted();
    scene.lower_the_limit_to(1);
    scene.pass(Span::from_secs(1));
    scene.claim("ann").is(Outcome::Resumed(ann));
    assert_eq!(scene.pool.get(ann).expect("it is in").last_heartbeat, scene.now);
    assert_eq!(scene.holders(), ["ann", "bob"]);
}

#[test]
fn a_device_keeps_its_session_under_a_limit_of_zero() {
    for mut scene in [devices(1), devices_that_deny(1)] {
        let ann = scene.claim("ann").admitted();
        scene.lower_the_limit_to(0);
        scene.claim("ann").is(Outcome::Resumed(ann));
    }
}

#[test]
fn a_capacity_keeps_its_tier_under_a_limit_of_zero() {
    let mut scene = capacity();
    let ann = scene.ask(by("ann").tier(1)).admitted();
    scene.lower_the_limit_to(0);
    scene.ask(by("ann").tier(3)).is(Outcome::Existing(ann));
}

#[test]
fn a_device_supersedes_itself_while_the_entitlement_is_out_of_reach() {
    let mut scene = devices(2);
    scene.claim("ann").admitted();
    scene.claim("bob").admitted();
    scene.entitlement_is_out_of_reach();
    scene.claim("ann").ending([("ann", EndReason::Superseded)]).admitted();
    assert_eq!(scene.holders(), ["ann", "bob"]);
}

#[test]
fn a_device_above_the_last_known_limit_evicts_nobody_while_the_entitlement_is_out_of_reach() {
    let mut scene = devices(2);
    let ann = scene.claim("ann").admitted();
    scene.claim("bob").admitted();
    scene.revise(|terms| terms.limit.0 = 1);
    scene.entitlement_is_out_of_reach();
    scene.claim("ann").is(Outcome::Resumed(ann));
    assert_eq!(scene.holders(), ["ann", "bob"]);
}

#[test]
fn a_capacity_upgrades_while_the_entitlement_is_out_of_reach() {
    let mut scene = capacity();
    scene.ask(by("ann").tier(1)).admitted();
    scene.entitlement_is_out_of_reach();
    scene.ask(by("ann").tier(2)).ending([("ann", EndReason::Upgraded)]).admitted();
}
