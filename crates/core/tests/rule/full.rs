//! Clauses 4 and 5: a free seat, and the behaviour of a full pool.

use seatkeeper_core::rule::EVICTIONS_MAX;
use seatkeeper_core::{
    EndReason, LoadBound, Others, Outcome, Policy, Pool, RegistryTime, Seats, Session, Span, Terms, rule,
};

use crate::scene::{
    Scene, TTL, TTL_DEFAULT, a_session_id, by, devices, devices_that_deny, every_denying_kind, every_kind,
    license,
};

fn second() -> Span {
    Span::from_secs(1)
}

/// Admits the holders a second apart.
fn admit_in_turn(scene: &mut Scene, holders: &[&str]) {
    for holder in holders {
        scene.claim(holder).admitted();
        scene.pass(second());
    }
}

#[test]
fn a_pool_admits_up_to_its_limit() {
    for mut scene in every_kind(3) {
        admit_in_turn(&mut scene, &["ann", "bob", "cid"]);
        assert_eq!(scene.holders(), ["ann", "bob", "cid"]);
    }
}

#[test]
fn a_new_session_starts_now_with_the_ttl_of_its_terms() {
    for mut scene in every_kind(1) {
        let id = scene.ask(by("ann").user("boss").tier(2)).admitted();
        let session = scene.pool.get(id).expect("it is in");
        assert_eq!((session.started, session.last_heartbeat, session.ttl), (scene.now, scene.now, TTL));
        assert_eq!((session.holder.as_str(), session.tier.0), ("ann", 2));
        assert_eq!(session.users.first().as_str(), "boss");
    }
}

#[test]
fn a_newcomer_to_a_full_pool_is_denied_and_nothing_changes() {
    for mut scene in every_denying_kind(1) {
        scene.claim("ann").admitted();
        scene.claim("bob").full();
        assert_eq!(scene.holders(), ["ann"]);
    }
}

#[test]
fn a_seat_that_was_given_back_can_be_taken() {
    let mut scene = license(1);
    let ann = scene.claim("ann").admitted();
    rule::end(&mut scene.pool, ann, EndReason::Released, scene.now);
    scene.claim("bob").admitted();
}

#[test]
fn a_full_pool_evicts_its_stalest_session() {
    let mut scene = devices(2);
    admit_in_turn(&mut scene, &["ann", "bob"]);
    scene.claim("cid").ending([("ann", EndReason::Evicted)]).admitted();
    assert_eq!(scene.holders(), ["bob", "cid"]);
}

#[test]
fn a_heartbeat_keeps_a_session_from_being_the_stalest() {
    let mut scene = devices(2);
    let ann = scene.claim("ann").admitted();
    scene.pass(second());
    scene.claim("bob").admitted();
    scene.pass(second());
    scene.heartbeat(ann);
    scene.claim("cid").ending([("bob", EndReason::Evicted)]).admitted();
}

#[test]
fn of_two_last_heartbeats_that_are_equal_the_earlier_start_goes() {
    let mut scene = devices(2);
    let ann = scene.claim("ann").admitted();
    scene.pass(second());
    let bob = scene.claim("bob").admitted();
    scene.pass(second());
    scene.heartbeat(bob);
    scene.heartbeat(ann);
    assert!(bob < ann, "or the order of ids would say the same");
    scene.claim("cid").ending([("ann", EndReason::Evicted)]).admitted();
}

#[test]
fn of_two_starts_that_are_equal_the_lesser_id_goes() {
    let mut scene = devices(2);
    let ann = scene.claim("ann").admitted();
    let bob = scene.claim("bob").admitted();
    assert!(bob < ann);
    scene.claim("cid").ending([("bob", EndReason::Evicted)]).admitted();
}

#[test]
fn the_order_of_eviction_is_one_over_all_ttls() {
    let mut scene = devices(2);
    scene.claim("long").admitted();
    scene.pass(second());
    scene.next_claim_brings(|terms| terms.ttl = Span::from_secs(10));
    scene.claim("short").admitted();
    scene.pass(second());
    scene.claim("new").ending([("long", EndReason::Evicted)]).admitted();
    scene.claim("newer").ending([("short", EndReason::Evicted)]).admitted();
}

#[test]
fn after_a_downgrade_as_many_are_evicted_as_it_takes() {
    let mut scene = devices(4);
    admit_in_turn(&mut scene, &["ann", "bob", "cid", "dan"]);
    scene.lower_the_limit_to(2);
    let ends = [("ann", EndReason::Evicted), ("bob", EndReason::Evicted), ("cid", EndReason::Evicted)];
    scene.claim("eve").ending(ends).admitted();
    assert_eq!(scene.holders(), ["dan", "eve"]);
}

#[test]
fn the_session_that_is_named_is_replaced_instead_of_the_stalest() {
    for mut scene in [devices(2), devices_that_deny(2)] {
        scene.claim("ann").admitted();
        scene.pass(second());
        let bob = scene.claim("bob").admitted();
        scene.ask(by("cid").replacing(bob)).ending([("bob", EndReason::Evicted)]).admitted();
        assert_eq!(scene.holders(), ["ann", "cid"]);
    }
}

#[test]
fn a_session_whose_seat_is_handed_over_is_superseded() {
    for mut scene in [devices(2), devices_that_deny(2)] {
        scene.claim("ann").admitted();
        let bob = scene.claim("bob").admitted();
        scene.ask(by("cid").handing_over(bob)).ending([("bob", EndReason::Superseded)]).admitted();
        assert_eq!(scene.holders(), ["ann", "cid"]);
    }
}

#[test]
fn the_id_of_a_session_tells_whether_its_seat_was_handed_over() {
    let mut scene = devices(2);
    let other = a_session_id(7);
    let (plain, replacing) = (by("ann"), by("bob").replacing(other));
    for (claim, is_told) in [(plain, false), (replacing, false), (by("cid").handing_over(other), true)] {
        let fresh = scene.fresh_id();
        let decision = scene.ask_with_id(claim, fresh);
        let Outcome::Admitted(id) = decision.outcome else { panic!("{decision:?}") };
        assert_eq!(id.has_handed_over_seat(), is_told);
        assert_eq!(id, if is_told { fresh.with_handed_over_seat() } else { fresh });
        assert!(scene.pool.get(id).is_some());
    }
}

#[test]
fn nobody_is_replaced_while_a_seat_is_free() {
    for mut scene in every_kind(2) {
        let ann = scene.claim("ann").admitted();
        scene.ask(by("bob").replacing(ann)).admitted();
        assert_eq!(scene.holders(), ["ann", "bob"]);
    }
}

#[test]
fn a_seat_is_handed_over_also_while_another_is_free() {
    for mut scene in every_kind(3) {
        admit_in_turn(&mut scene, &["ann"]);
        let bob = scene.claim("bob").admitted();
        scene.ask(by("cid").handing_over(bob)).ending([("bob", EndReason::Superseded)]).admitted();
        assert_eq!(scene.holders(), ["ann", "cid"]);
        let nowhere = scene.fresh_id();
        scene.ask(by("dan").handing_over(nowhere)).admitted();
        assert_eq!(scene.holders(), ["ann", "cid", "dan"]);
    }
}

#[test]
fn an_unknown_limit_lets_a_holder_hand_its_seat_over_while_another_is_free() {
    let mut scene = devices(2);
    let ann = scene.claim("ann").admitted();
    scene.entitlement_is_out_of_reach();
    scene.ask(by("bob").handing_over(ann)).ending([("ann", EndReason::Superseded)]).admitted();
    assert_eq!(scene.holders(), ["bob"]);
}

#[test]
fn replacing_a_session_that_is_not_in_the_pool_is_as_naming_none() {
    let mut scene = devices(1);
    scene.claim("ann").admitted();
    let nowhere = scene.fresh_id();
    scene.ask(by("bob").replacing(nowhere)).ending([("ann", EndReason::Evicted)]).admitted();

    let mut scene = devices_that_deny(1);
    scene.claim("ann").admitted();
    scene.ask(by("bob").replacing(nowhere)).full();
}

#[test]
fn after_a_downgrade_the_named_session_goes_first_and_then_the_stalest() {
    let mut scene = devices(3);
    admit_in_turn(&mut scene, &["ann", "bob"]);
    let cid = scene.claim("cid").admitted();
    scene.lower_the_limit_to(2);
    let ends = [("cid", EndReason::Evicted), ("ann", EndReason::Evicted)];
    scene.ask(by("dan").replacing(cid)).ending(ends).admitted();
    assert_eq!(scene.holders(), ["bob", "dan"]);
}

#[test]
fn where_newcomers_are_denied_a_replacement_ends_no_more_than_it_names() {
    let mut scene = devices_that_deny(3);
    admit_in_turn(&mut scene, &["ann", "bob"]);
    let cid = scene.claim("cid").admitted();
    scene.lower_the_limit_to(2);
    scene.ask(by("dan").replacing(cid)).full();
    assert_eq!(scene.holders(), ["ann", "bob", "cid"]);
}

#[test]
fn a_limit_of_zero_denies_everyone() {
    for mut scene in every_kind(0) {
        assert_eq!(scene.claim("ann").full(), None);
        assert!(scene.pool.is_empty());
    }
}

#[test]
fn a_limit_of_zero_evicts_and_replaces_nobody() {
    for mut scene in every_kind(1) {
        let ann = scene.claim("ann").admitted();
        scene.lower_the_limit_to(0);
        assert_eq!(scene.claim("bob").full(), None);
        assert_eq!(scene.ask(by("bob").replacing(ann)).full(), None);
        assert_eq!(scene.holders(), ["ann"]);
    }
}

#[test]
fn lowering_the_limit_ends_nobody() {
    for mut scene in every_kind(3) {
        admit_in_turn(&mut scene, &["ann", "bob", "cid"]);
        assert_eq!(scene.revise(|terms| terms.limit = Seats(1)), []);
        assert_eq!(scene.pool.live(), 3);
    }
}

#[test]
fn a_pool_above_its_lowered_limit_denies_until_it_is_below() {
    for mut scene in every_denying_kind(3) {
        let ids: Vec<_> = ["ann", "bob", "cid"].map(|holder| scene.claim(holder).admitted()).into();
        scene.lower_the_limit_to(2);
        scene.claim("dan").full();
        rule::end(&mut scene.pool, ids[0], EndReason::Released, scene.now);
        scene.claim("dan").full();
        rule::end(&mut scene.pool, ids[1], EndReason::Released, scene.now);
        scene.claim("dan").admitted();
    }
}

#[test]
fn a_denial_says_in_how_long_the_first_seat_can_come_free() {
    let mut scene = license(2);
    admit_in_turn(&mut scene, &["ann", "bob"]);
    assert_eq!(scene.claim("cid").full(), Some(Span::from_secs(58)));
}

#[test]
fn above_the_limit_a_denial_counts_on_as_many_seats_as_it_takes() {
    let mut scene = license(3);
    admit_in_turn(&mut scene, &["ann", "bob", "cid"]);
    scene.lower_the_limit_to(1);
    assert_eq!(scene.claim("dan").full(), Some(Span::from_secs(59)));
    scene.lower_the_limit_to(2);
    assert_eq!(scene.claim("dan").full(), Some(Span::from_secs(58)));
}

#[test]
fn a_denial_looks_over_all_ttls() {
    let mut scene = license(3);
    scene.claim("long").admitted();
    scene.next_claim_brings(|terms| terms.ttl = Span::from_secs(10));
    scene.claim("short").admitted();
    scene.pass(second());
    scene.claim("shorter").admitted();
    assert_eq!(scene.claim("new").full(), Some(Span::from_secs(9)));
    scene.lower_the_limit_to(2);
    assert_eq!(scene.claim("new").full(), Some(Span::from_secs(10)));
    scene.lower_the_limit_to(1);
    assert_eq!(scene.claim("new").full(), Some(Span::from_secs(59)));
}

#[test]
fn a_denial_counts_on_the_end_of_the_entitlement_too() {
    let mut scene = license(1);
    let ends_at = scene.now + Span::from_secs(5);
    scene.next_claim_brings(|terms| terms.ends_at = Some(ends_at));
    scene.claim("ann").admitted();
    assert_eq!(scene.claim("bob").full(), Some(Span::from_secs(5)));
}

#[test]
fn an_unknown_limit_is_the_last_one_known() {
    for mut scene in every_kind(2) {
        scene.entitlement_is_out_of_reach();
        scene.claim("ann").admitted();
        scene.claim("bob").admitted();
        scene.claim("cid").full();
    }
}

#[test]
fn where_no_limit_was_ever_known_there_is_one_seat_of_the_default_ttl() {
    for scene in every_kind(4) {
        let mut scene = scene.of_which_nothing_is_known();
        scene.claim("ann").admitted();
        assert_eq!(scene.claim("bob").full(), Some(TTL_DEFAULT));
        scene.pass(TTL_DEFAULT);
        scene.claim("bob").ending([("ann", EndReason::Expired)]).admitted();
    }
}

#[test]
fn an_unknown_limit_never_evicts_nor_replaces() {
    for mut scene in every_kind(1) {
        let ann = scene.claim("ann").admitted();
        scene.entitlement_is_out_of_reach();
        scene.claim("bob").full();
        scene.ask(by("bob").replacing(ann)).full();
        assert_eq!(scene.holders(), ["ann"]);
    }
}

#[test]
fn a_limit_that_is_known_again_evicts_again() {
    let mut scene = devices(1).of_which_nothing_is_known();
    scene.claim("ann").admitted();
    scene.claim("bob").full();
    scene.policy.terms = devices(1).policy.terms;
    scene.claim("bob").ending([("ann", EndReason::Evicted)]).admitted();
}

#[test]
fn the_pools_own_questions_have_answers_when_it_is_empty() {
    let pool = Pool::new(None);
    assert_eq!((pool.live(), pool.is_empty(), pool.next_expiry()), (0, true, None));
    assert!(pool.stalest().is_none() && pool.iter().next().is_none());
    assert!(pool.get(a_session_id(1)).is_none() && pool.held_by(&"ann".into()).is_none());
    assert_eq!(pool.terms(), None::<Terms>);
    assert_eq!(pool.below_limit_at(Seats(1)), None::<RegistryTime>);
}

/// The registry may have to load these sessions from a database for each denial.
#[test]
fn a_denial_by_a_pool_far_above_its_limit_needs_a_bounded_number_of_sessions() {
    for mut scene in every_denying_kind(5_000) {
        for number in 0..5_000 {
            scene.claim(&format!("machine-{number}")).admitted();
            scene.pass(Span::from_millis(1));
        }
        let terms = scene.changed(|terms| terms.limit = Seats(1));
        let policy = Policy { terms: Some(terms), ..scene.policy };
        let live = scene.pool.live();
        let LoadBound::Stalest(needed) = LoadBound::to_admit(scene.pool.terms(), &policy, live, scene.now)
        else {
            panic!("nobody is over");
        };
        assert!(needed <= EVICTIONS_MAX, "{needed} sessions");
        let stalest: Vec<_> = scene.pool.stalest_first().take(needed as usize).cloned().collect();
        let others = Others {
            count: live - needed,
            silent_from: stalest.last().map(Session::silent_until).unwrap_or_default(),
        };
        let view = Pool::in_view(scene.pool.terms(), stalest, others);
        let whole = std::mem::replace(&mut scene.pool, view);
        scene.policy = policy;
        let of_view = scene.claim("new").full();
        scene.pool = whole;
        assert_eq!(scene.claim("new").full(), of_view);
        let until_all_but_one_are_gone = scene.pool.next_expiry().unwrap() + Span::from_millis(4_999);
        assert!(of_view > Some(Span::ZERO) && of_view < Some(until_all_but_one_are_gone.since(scene.now)));
    }
}

#[test]
fn a_limit_lowered_by_thousands_is_reached_in_decisions_of_a_bounded_number_of_evictions() {
    for holder in ["new", "device-1999"] {
        let mut scene = devices(2_000);
        for number in 0..2_000 {
            scene.claim(&format!("device-{number}")).admitted();
        }
        scene.pass(second());
        scene.lower_the_limit_to(2);
        let mut evicted = 0;
        let last = loop {
            let decision = scene.claim(holder).decision;
            evicted += decision.ended.len();
            assert!(decision.ended.len() <= EVICTIONS_MAX as usize + 1, "{} at once", decision.ended.len());
            if decision.outcome != Outcome::MakingRoom {
                break decision;
            }
            assert_eq!(decision.ended.len(), EVICTIONS_MAX as usize);
            assert!(scene.pool.live() >= 2, "nobody takes a seat before the last decision");
        };
        assert!(matches!(last.outcome, Outcome::Admitted(_)), "{last:?}");
        assert_eq!((evicted, scene.pool.live()), (1_999, 2));
    }
}
