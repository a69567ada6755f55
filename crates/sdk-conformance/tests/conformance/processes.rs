//! Programs that freeze and die, and many seats of one program.

use std::time::{Duration, Instant};

use seatkeeper_sdk_conformance::driver::LONG;
use seatkeeper_sdk_conformance::exchange::{Exchange, Kind};
use seatkeeper_sdk_conformance::language::Language;
use seatkeeper_sdk_conformance::stage::{Access, Stage, Terms};
use serde_json::json;
use tokio::time::sleep;

use crate::{any_moment, one_seat, stage};

/// The machine of scenarios with one seat.
const MACHINE: &str = "m-1";

/// The time that the server takes to notice an end after the TTL, on a busy host.
const SWEEP: Duration = Duration::from_secs(2);

pub(crate) async fn a_frozen_program_whose_seat_was_taken_tells_the_loss(language: Language) {
    let mut stage = stage(language, one_seat(3)).await;
    let frozen = stage.driver(Access::Token, true).await;
    let other = stage.driver(Access::Token, true).await;
    stage.acquire(&frozen, MACHINE).await;
    any_moment(&mut stage).await;
    frozen.suspend();
    let acquired = other.call("acquire", stage.request("m-2", Some(20)), LONG).await;
    assert!(acquired["session"].is_string(), "{acquired}");
    let start = Instant::now();
    frozen.resume();
    let lost = frozen.told(MACHINE, "lost", start, LONG).await;
    assert!(matches!(lost.reason.as_deref(), Some("expired" | "deadline")), "{}", frozen.story());
    sleep(2 * stage.interval()).await;
    assert_eq!(stage.server.live_machines().await, ["m-2"]);
    assert_eq!(other.transcript().kinds("m-2"), ["active"], "{}", other.story());
    stage.close(frozen).await;
    stage.close(other).await;
    stage.server.wait_for_ends(MACHINE, &["expired"], SWEEP).await;
    stage.server.wait_for_ends("m-2", &["released"], SWEEP).await;
    stage.finish().await;
}

pub(crate) async fn a_frozen_program_whose_seat_is_free_takes_it_again(language: Language) {
    let mut stage = stage(language, one_seat(3)).await;
    let driver = stage.driver(Access::Token, true).await;
    stage.acquire(&driver, MACHINE).await;
    any_moment(&mut stage).await;
    driver.suspend();
    stage.server.wait_for_machines(&[], stage.terms.ttl + SWEEP).await;
    let start = Instant::now();
    driver.resume();
    driver.is_in(MACHINE, "active", start, LONG).await;
    stage.close(driver).await;
    stage.server.wait_for_ends(MACHINE, &["expired", "released"], SWEEP).await;
    stage.finish().await;
}

pub(crate) async fn the_seat_of_a_killed_program_is_free_after_the_ttl(language: Language) {
    let mut stage = stage(language, one_seat(3)).await;
    for is_own_crash in [false, true] {
        let mut driver = stage.driver(Access::Token, true).await;
        stage.acquire(&driver, MACHINE).await;
        any_moment(&mut stage).await;
        let start = Instant::now();
        if is_own_crash {
            driver.send("crash", json!({}));
            assert!(!driver.ended().await.success());
        } else {
            driver.kill().await;
        }
        assert_eq!(stage.server.live_machines().await, [MACHINE], "a dead program gives nothing back");
        let free = stage.server.wait_for_machines(&[], stage.terms.ttl + SWEEP).await;
        assert!(free - start >= stage.terms.ttl / 2, "the seat was free after {:?}", free - start);
        stage.bury(&driver);
    }
    stage.server.wait_for_ends(MACHINE, &["expired", "expired"], SWEEP).await;
    stage.finish().await;
}

pub(crate) async fn fifty_seats_outlive_a_restart(language: Language) {
    const SEATS: u32 = 50;
    let mut stage = stage(language, Terms { seats: SEATS, ttl: Duration::from_secs(6) }).await;
    let driver = stage.driver(Access::Token, true).await;
    let machines: Vec<_> = (0..SEATS).map(|place| format!("m-{place:02}")).collect();
    let acquires: Vec<_> =
        machines.iter().map(|machine| driver.send("acquire", stage.request(machine, None))).collect();
    for acquire in acquires {
        let answer = driver.answer(acquire, LONG).await;
        assert!(answer.get("error").is_none(), "{answer}");
    }
    any_moment(&mut stage).await;
    let down = Instant::now();
    stage.server.kill().await;
    sleep(stage.terms.ttl / 4).await;
    stage.server.restart().await;
    let up = Instant::now();
    for machine in &machines {
        driver.is_in(machine, "active", up + stage.interval(), LONG).await;
    }
    // The broken streams of all seats at once wake no heartbeats.
    let after_outage = spread(&stage, &machines, down);
    assert!(after_outage >= stage.interval() / 2, "the first tries are spread over {after_outage:?} alone");
    // Retries have full jitter over a quarter of an interval.
    let after_return = spread(&stage, &machines, up);
    assert!(
        after_return >= stage.interval() / 8,
        "the tries after the return are spread over {after_return:?} alone"
    );
    let transcript = driver.transcript();
    let lost = transcript.told.iter().filter(|told| told.kind == "lost").count();
    assert_eq!(lost, 0, "{}", driver.story());
    stage.close(driver).await;
    let audit = stage.server.audit().await;
    for machine in &machines {
        assert_eq!(audit.admissions(machine), 1, "{machine}");
    }
    stage.finish().await;
}

/// Returns the time between the earliest and the latest of the first heartbeats of all machines at `since` or later.
fn spread(stage: &Stage, machines: &[String], since: Instant) -> Duration {
    let exchanges = stage.proxy.exchanges();
    let first = |machine: &String| {
        let is_first = |exchange: &&Exchange| {
            exchange.kind == Kind::Heartbeat
                && exchange.machine.as_deref() == Some(machine)
                && exchange.begun >= since
        };
        exchanges.iter().find(is_first).expect("a heartbeat of each seat").begun
    };
    let first: Vec<_> = machines.iter().map(first).collect();
    *first.iter().max().expect("seats") - *first.iter().min().expect("seats")
}
