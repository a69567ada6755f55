//! Faults between client and server: a seat lives through an outage that is shorter than its TTL.

use std::time::{Duration, Instant};

use seatkeeper_sdk_conformance::driver::{Driver, LONG};
use seatkeeper_sdk_conformance::exchange::{Exchange, Kind};
use seatkeeper_sdk_conformance::proxy::{Canned, Fault};
use seatkeeper_sdk_conformance::stage::{Access, Cast, Stage};
use serde_json::json;
use tokio::time::sleep;

use crate::{any_moment, one_seat, stage, until};

/// The machine of scenarios with one seat.
pub(crate) const MACHINE: &str = "m-1";

/// Waits until a heartbeat that was sent at `since` or later has renewed the seat.
async fn renewed(stage: &Stage, since: Instant) {
    let start = Instant::now();
    let is_renewal = |exchange: &Exchange| {
        exchange.kind == Kind::Heartbeat && exchange.begun >= since && exchange.deadline().is_some()
    };
    while !stage.proxy.exchanges().iter().any(is_renewal) {
        assert!(start.elapsed() < LONG, "no heartbeat has renewed the seat");
        sleep(Duration::from_millis(10)).await;
    }
}

/// Checks that the seat has lived through an outage: active again, never lost, and with one admission.
pub(crate) async fn survived(stage: &mut Stage, driver: Driver, since: Instant) {
    renewed(stage, since).await;
    driver.is_in(MACHINE, "active", Instant::now(), LONG).await;
    let transcript = driver.transcript();
    let kinds = transcript.kinds(MACHINE);
    assert!(kinds.iter().all(|kind| matches!(*kind, "active" | "offline")), "{}", driver.story());
    stage.close(driver).await;
    stage.server.wait_for_ends(MACHINE, &["released"], LONG).await;
}

pub(crate) async fn a_killed_server_that_restarts_costs_nothing(cast: Cast) {
    let mut stage = stage(cast, one_seat(5)).await;
    let driver = stage.driver(Access::Token, true).await;
    stage.acquire(&driver, MACHINE).await;
    renewed(&stage, Instant::now()).await;
    any_moment(&mut stage).await;
    stage.server.kill().await;
    sleep(stage.terms.ttl / 4).await;
    stage.server.restart().await;
    survived(&mut stage, driver, Instant::now()).await;
    stage.finish().await;
}

/// Kills the node in use. Another node serves the seat before the killed one is back.
pub(crate) async fn a_killed_node_costs_nothing(cast: Cast) {
    let mut stage = stage(cast, one_seat(5)).await;
    let driver = stage.driver(Access::Token, true).await;
    stage.acquire(&driver, MACHINE).await;
    renewed(&stage, Instant::now()).await;
    any_moment(&mut stage).await;
    stage.server.kill().await;
    survived(&mut stage, driver, Instant::now()).await;
    stage.finish().await;
}

pub(crate) async fn a_frozen_server_costs_nothing(cast: Cast) {
    let mut stage = stage(cast, one_seat(5)).await;
    let driver = stage.driver(Access::Token, true).await;
    stage.acquire(&driver, MACHINE).await;
    any_moment(&mut stage).await;
    stage.server.suspend();
    sleep(stage.terms.ttl / 2).await;
    stage.server.resume();
    survived(&mut stage, driver, Instant::now()).await;
    stage.finish().await;
}

pub(crate) async fn a_lost_reply_to_an_acquire_takes_no_second_seat(cast: Cast) {
    let mut stage = stage(cast, one_seat(3)).await;
    let driver = stage.driver(Access::Token, true).await;
    stage.proxy.lose_reply(Kind::Acquire);
    stage.acquire(&driver, MACHINE).await;
    let acquires = stage.proxy.exchanges().iter().filter(|exchange| exchange.kind == Kind::Acquire).count();
    assert!(acquires >= 2, "the client has not retried");
    survived(&mut stage, driver, Instant::now()).await;
    stage.finish().await;
}

pub(crate) async fn lost_replies_to_heartbeats_cost_nothing(cast: Cast) {
    let mut stage = stage(cast, one_seat(5)).await;
    let driver = stage.driver(Access::Token, true).await;
    stage.acquire(&driver, MACHINE).await;
    (0..2).for_each(|_| stage.proxy.lose_reply(Kind::Heartbeat));
    let start = Instant::now();
    let is_lost = |exchange: &&Exchange| exchange.reply.as_ref().is_some_and(|reply| !reply.is_delivered);
    while stage.proxy.exchanges().iter().filter(is_lost).count() < 2 {
        assert!(start.elapsed() < LONG, "the client has not retried");
        sleep(Duration::from_millis(10)).await;
    }
    survived(&mut stage, driver, Instant::now()).await;
    stage.finish().await;
}

pub(crate) async fn a_black_hole_ends_the_seat_by_its_deadline(cast: Cast) {
    let mut stage = stage(cast, one_seat(3)).await;
    let driver = stage.driver(Access::Token, true).await;
    stage.acquire(&driver, MACHINE).await;
    any_moment(&mut stage).await;
    let start = Instant::now();
    stage.proxy.set(Fault::BlackHole);
    // The invariants compare each look at the state with the deadline.
    let lost = driver.told(MACHINE, "lost", start, stage.terms.ttl + Duration::from_secs(1)).await;
    assert_eq!((lost.reason.as_deref(), lost.retry), (Some("deadline"), true), "{}", driver.story());
    until(start + 2 * stage.terms.ttl).await;
    let end = Instant::now();
    stage.proxy.set(Fault::Pass);
    driver.told(MACHINE, "active", end, LONG).await;
    renewed(&stage, end).await;
    stage.close(driver).await;
    stage.server.wait_for_ends(MACHINE, &["expired", "released"], LONG).await;
    stage.finish().await;
}

pub(crate) async fn requests_that_arrive_late_do_no_harm(cast: Cast) {
    let mut stage = stage(cast, one_seat(5)).await;
    let driver = stage.driver(Access::Token, true).await;
    stage.acquire(&driver, MACHINE).await;
    any_moment(&mut stage).await;
    stage.proxy.set(Fault::Freeze);
    sleep(stage.terms.ttl / 2).await;
    stage.proxy.set(Fault::Pass);
    survived(&mut stage, driver, Instant::now()).await;
    stage.finish().await;
}

pub(crate) async fn connections_that_break_cost_nothing(cast: Cast) {
    outage(cast, Fault::Reset).await;
}

pub(crate) async fn unavailable_answers_cost_nothing(cast: Cast) {
    let problem = r#"{"type":"https://seatkeeper.dev/problems/unavailable","title":"busy","status":503}"#;
    let content_type = "application/problem+json";
    outage(cast, Fault::Answer(Canned { status: 503, retry_after: Some(1), content_type, body: problem }))
        .await;
}

pub(crate) async fn throttled_answers_cost_nothing(cast: Cast) {
    let problem =
        r#"{"type":"https://seatkeeper.dev/problems/too-many-requests","title":"slow","status":429}"#;
    let content_type = "application/problem+json";
    outage(cast, Fault::Answer(Canned { status: 429, retry_after: Some(1), content_type, body: problem }))
        .await;
}

pub(crate) async fn pages_in_place_of_answers_cost_nothing(cast: Cast) {
    let body = "<!doctype html><title>Sign in to the network</title>";
    outage(cast, Fault::Answer(Canned { status: 200, retry_after: None, content_type: "text/html", body }))
        .await;
}

/// Plays `fault` from the acquire on, and once more to a held seat, for half a TTL each.
async fn outage(cast: Cast, fault: Fault) {
    let mut stage = stage(cast, one_seat(5)).await;
    let driver = stage.driver(Access::Token, true).await;
    stage.proxy.set(fault.clone());
    let acquire = driver.send("acquire", stage.request(MACHINE, None));
    sleep(stage.terms.ttl / 2).await;
    stage.proxy.set(Fault::Pass);
    let answer = driver.answer(acquire, LONG).await;
    assert!(answer.get("error").is_none(), "{answer}");
    any_moment(&mut stage).await;
    stage.proxy.set(fault);
    sleep(stage.terms.ttl / 2).await;
    stage.proxy.set(Fault::Pass);
    let _ = driver.call("activity", json!({"seat": MACHINE}), LONG).await;
    survived(&mut stage, driver, Instant::now()).await;
    stage.finish().await;
}
