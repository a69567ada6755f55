//! Clauses on admission and denial by free seats.

use std::collections::BTreeSet;

use seatkeeper_core::rule::EVICTIONS_MAX;
use seatkeeper_core::{EndReason, Seats, Span};

use super::books::{Account, waiting};
use super::harness::{Harness, Scene};
use super::opening::held_since_long;
use super::plan::{capacity, devices, seats};
use super::pool::admin;
use crate::{Error, Heartbeat};

pub async fn a_pool_admits_up_to_its_limit_and_then_denies(h: &impl Harness) {
    let pool = h.pool(seats(3)).await;
    for holder in ["ann", "bob", "cid"] {
        pool.claim(holder).await.admitted();
    }
    pool.claim("dan").await.full();
    assert_eq!(pool.holders().await, ["ann", "bob", "cid"]);
}

pub async fn an_admission_tells_of_its_session(h: &impl Harness) {
    let pool = h.pool(seats(2)).await;
    let before = h.now().await;
    let claimed = pool.claim("ann").by("boss").of_tier(2).await.answered();
    let after = h.now().await;
    assert_eq!((claimed.live, claimed.limit.0), (1, 2));

    let ann = pool.claim("ann").by("boss").of_tier(2).await.resumed();
    let session = &ann.session;
    assert!(before <= session.started && session.started <= after, "{before:?} {session:?} {after:?}");
    assert_eq!((session.holder.as_str(), session.users.first().as_str()), ("ann", "boss"));
    assert_eq!((session.tier.0, session.ttl), (2, pool.ttl()));
    assert_eq!(ann.expires, session.last_heartbeat + pool.ttl());
    assert_eq!(ann.expires_in, pool.ttl());
    assert_eq!(ann.pool, pool.id);
    assert_eq!(session.id.bucket(), pool.bucket(), "a session id routes itself");
}

pub async fn a_full_pool_admits_again_once_a_ttl_is_over(h: &impl Harness) {
    let pool = h.pool(seats(1).brief()).await;
    pool.claim("ann").await.admitted();
    pool.claim("bob").await.full();
    h.let_pass(pool.ttl()).await;
    pool.claim("bob").await.admitted();
    assert_eq!(pool.holders().await, ["bob"]);
}

pub async fn a_seat_that_was_given_back_can_be_taken_at_once(h: &impl Harness) {
    let pool = h.pool(seats(1)).await;
    let ann = pool.claim("ann").await.admitted();
    pool.claim("bob").await.full();
    pool.release(&ann).await;
    pool.claim("bob").await.admitted();
}

pub async fn a_denial_says_in_how_long_a_seat_can_come_free(h: &impl Harness) {
    let pool = h.pool(seats(2)).await;
    let ann = pool.claim("ann").await.admitted();
    h.let_a_moment_pass().await;
    let bob = pool.claim("bob").await.admitted();

    let asked = h.now().await;
    let free_in = pool.claim("cid").await.full().expect("a seat can come free");
    assert!(free_in <= ann.expires.since(asked), "{free_in:?}");
    assert!(free_in >= ann.expires.since(h.now().await), "{free_in:?}");

    let asked = h.now().await;
    let free_in = pool.at_limit(1).claim("cid").await.full().expect("a seat can come free");
    assert!(free_in <= bob.expires.since(asked), "above the limit two have to go: {free_in:?}");
    assert!(free_in >= bob.expires.since(h.now().await), "above the limit two have to go: {free_in:?}");
}

/// Otherwise each denial would read every session above a lowered limit.
pub async fn a_denial_far_above_the_limit_tells_the_wait_until_a_bounded_number_is_gone(h: &impl Harness) {
    const LIVE: u64 = EVICTIONS_MAX as u64 + 40;
    let pool = h.pool_not_open(seats(LIVE as u32));
    let mut held = Vec::new();
    for number in 1..=LIVE {
        held.push(held_since_long(h, &pool, &format!("machine {number}"), number).await);
    }
    let opened_after = h.now().await;
    pool.open(LIVE, held.clone()).await;
    let opened_by = h.now().await;
    h.let_pass(Span::from_millis(500)).await;
    // The sessions beyond the bound go later.
    for session in &held[EVICTIONS_MAX as usize..] {
        let renewed = pool.heartbeat_by(&admin(), session.id).await;
        assert!(matches!(renewed, Heartbeat::Renewed(_)), "{renewed:?}");
    }
    let asked = h.now().await;
    let free_in = pool.at_limit(1).claim("new").await.full().expect("a seat can come free");
    assert!(free_in <= (opened_by + pool.ttl()).since(asked), "{free_in:?}");
    assert!(free_in >= (opened_after + pool.ttl()).since(h.now().await), "{free_in:?}");
}

pub async fn a_limit_of_zero_denies(h: &impl Harness) {
    for plan in [seats(0), devices(0)] {
        let pool = h.pool(plan).await;
        assert_eq!(pool.claim("ann").await.full(), None);
    }
}

pub async fn a_full_pool_of_devices_evicts_the_stalest(h: &impl Harness) {
    let pool = h.pool(devices(2)).await;
    let tv = pool.claim("tv").await.admitted();
    h.let_a_moment_pass().await;
    pool.claim("phone").await.admitted();
    h.let_a_moment_pass().await;
    pool.claim("tablet").await.admitted_ending(&[(&tv, EndReason::Evicted)]);
    assert_eq!(pool.holders().await, ["phone", "tablet"]);
}

pub async fn a_heartbeat_keeps_a_device_from_being_the_stalest(h: &impl Harness) {
    let pool = h.pool(devices(2)).await;
    let tv = pool.claim("tv").await.admitted();
    h.let_a_moment_pass().await;
    let phone = pool.claim("phone").await.admitted();
    h.let_a_moment_pass().await;
    pool.heartbeat(&tv).await;
    pool.claim("tablet").await.admitted_ending(&[(&phone, EndReason::Evicted)]);
}

pub async fn after_a_downgrade_as_many_are_evicted_as_it_takes(h: &impl Harness) {
    let pool = h.pool(devices(4)).await;
    let mut in_turn = Vec::new();
    for device in ["tv", "phone", "tablet", "browser"] {
        in_turn.push(pool.claim(device).await.admitted());
        h.let_a_moment_pass().await;
    }
    let evicted: Vec<_> = in_turn[..3].iter().map(|live| (live, EndReason::Evicted)).collect();
    pool.at_limit(2).claim("new").await.admitted_ending(&evicted);
    assert_eq!(pool.holders().await, ["browser", "new"]);
}

pub async fn a_limit_lowered_by_thousands_is_kept_once_the_claim_is_answered(h: &impl Harness) {
    const DEVICES: u64 = 1_500;
    let pool = h.pool_not_open(devices(DEVICES as u32));
    let mut live = Vec::new();
    for number in 1..=DEVICES {
        live.push(held_since_long(h, &pool, &format!("device {number}"), number).await);
    }
    let mut account = Account::carried_forward(DEVICES, live.iter().map(|session| session.id));
    pool.open(DEVICES, live).await;
    let lowered = pool.at_limit(2);
    loop {
        let answer = lowered.claim("new").await.0;
        // A claim may have to wait until the ledger has the ends of its first steps.
        for entry in waiting(&*pool.registry).await {
            account.enter(&entry.event).expect("the journal adds up");
            pool.registry.journal_acknowledge(entry.receipt).await.expect("events can be acknowledged");
        }
        match answer {
            Ok(claimed) => {
                assert_eq!((claimed.live, claimed.limit), (2, Seats(2)));
                break;
            }
            Err(error) => assert!(matches!(error, Error::JournalFull { .. }), "{error:?}"),
        }
    }
    let view = pool.view().await;
    let in_view: BTreeSet<_> = view.sessions.iter().map(|live| live.session.id).collect();
    assert_eq!(in_view, account.live().collect());
    assert!(view.sessions.iter().any(|live| live.session.holder.as_str() == "new"), "{view:?}");
}

pub async fn the_session_that_is_named_is_replaced(h: &impl Harness) {
    let pool = h.pool(devices(2)).await;
    pool.claim("tv").await.admitted();
    h.let_a_moment_pass().await;
    let phone = pool.claim("phone").await.admitted();
    pool.claim("tablet").replacing(&phone).await.admitted_ending(&[(&phone, EndReason::Evicted)]);
    assert_eq!(pool.holders().await, ["tablet", "tv"]);
}

pub async fn a_session_whose_seat_is_handed_over_is_superseded(h: &impl Harness) {
    let pool = h.pool(devices(1).that_denies()).await;
    let tv = pool.claim("tv").await.admitted();
    pool.claim("screen").handing_over(&tv).await.admitted_ending(&[(&tv, EndReason::Superseded)]);
    assert_eq!(pool.holders().await, ["screen"]);
}

pub async fn a_seat_is_handed_over_in_one_step_also_while_another_is_free(h: &impl Harness) {
    for plan in [devices(3), devices(3).that_denies().called("that denies")] {
        let pool = h.pool(plan).await;
        pool.claim("phone").await.admitted();
        let tv = pool.claim("tv").await.admitted();
        let claim = pool.claim("screen").handing_over(&tv);
        let screen = claim.await.admitted_ending(&[(&tv, EndReason::Superseded)]);
        assert_eq!(pool.holders().await, ["phone", "screen"]);
        let marks = [&tv, &screen].map(|live| live.session.id.has_handed_over_seat());
        assert_eq!(marks, [false, true], "the id tells a seat that was handed over");
        assert_eq!(screen.session.id.bucket(), pool.bucket(), "a session id routes itself");
        pool.claim("tablet").handing_over(&tv).await.admitted();
        assert_eq!(pool.view().await.live, 3, "a session that is over hands nothing over");
    }
}

pub async fn a_seat_that_is_not_handed_over_is_kept_while_another_is_free(h: &impl Harness) {
    let pool = h.pool(devices(2)).await;
    let tv = pool.claim("tv").await.admitted();
    pool.claim("phone").replacing(&tv).await.admitted();
    assert_eq!(pool.holders().await, ["phone", "tv"]);
}

pub async fn where_newcomers_are_denied_one_can_still_be_replaced(h: &impl Harness) {
    let pool = h.pool(devices(2).that_denies()).await;
    let tv = pool.claim("tv").await.admitted();
    pool.claim("phone").await.admitted();
    pool.claim("tablet").await.full();
    let tablet = pool.claim("tablet").replacing(&tv).await.admitted_ending(&[(&tv, EndReason::Evicted)]);
    pool.at_limit(1).claim("browser").replacing(&tablet).await.full();
    assert_eq!(pool.holders().await, ["phone", "tablet"]);
}

pub async fn a_session_of_another_pool_is_not_replaced(h: &impl Harness) {
    let pool = h.pool(devices(1).that_denies()).await;
    let other = h.pool(devices(1).that_denies().called("other")).await;
    pool.claim("tv").await.admitted();
    let elsewhere = other.claim("tv").await.admitted();
    pool.claim("phone").replacing(&elsewhere).await.full();
    assert_eq!(other.holders().await, ["tv"]);
}

pub async fn an_unknown_limit_never_evicts(h: &impl Harness) {
    let pool = h.pool(devices(2)).await;
    let tv = pool.claim("tv").await.admitted();
    pool.claim("phone").await.admitted();
    pool.out_of_reach().claim("tablet").await.full();
    pool.out_of_reach().claim("tablet").replacing(&tv).await.full();
    assert_eq!(pool.holders().await, ["phone", "tv"]);
}

pub async fn where_no_limit_was_ever_known_there_is_one_seat(h: &impl Harness) {
    let pool = h.pool_not_open(devices(4)).out_of_reach();
    pool.registry.open(&pool.id, 0, None, Vec::new()).await.expect("a pool can be opened");
    let tv = pool.claim("tv").await.admitted();
    assert_eq!(tv.expires_in, pool.ttl());
    pool.claim("phone").await.full();
}

pub async fn pools_do_not_share_seats(h: &impl Harness) {
    let plans = [seats(1), devices(1), capacity(), seats(1).called("another"), seats(1).called("a third")];
    for plan in plans {
        let pool = h.pool(plan).await;
        let session = pool.claim("ann").await.admitted();
        assert_eq!(pool.holders().await, ["ann"]);
        assert_eq!(session.expires_in, Span::from_secs(3_600));
    }
}
