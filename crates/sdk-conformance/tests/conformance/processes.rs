//! Programs that freeze and die.

use std::time::{Duration, Instant};

use seatkeeper_sdk_conformance::driver::LONG;
use seatkeeper_sdk_conformance::stage::{Access, Cast};
use serde_json::json;
use tokio::time::sleep;

use crate::{any_moment, one_seat, stage};

/// The machine of scenarios with one seat.
const MACHINE: &str = "m-1";

/// The time that the server takes to notice an end after the TTL, on a busy host.
const SWEEP: Duration = Duration::from_secs(2);

/// The time of the design for the truth after a wake-up. On a busy host, one wake-up of [`WAKE_UPS`] must keep it.
const TRUTH_WITHIN: Duration = Duration::from_secs(2);

const WAKE_UPS: usize = 3;

pub(crate) async fn a_frozen_program_whose_seat_was_taken_tells_the_loss(cast: Cast) {
    let mut stage = stage(cast, one_seat(3)).await;
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

pub(crate) async fn a_frozen_program_whose_seat_is_free_takes_it_again(cast: Cast) {
    let mut stage = stage(cast, one_seat(3)).await;
    let driver = stage.driver(Access::Token, true).await;
    stage.acquire(&driver, MACHINE).await;
    let (mut ends, mut fastest) = (Vec::new(), Duration::MAX);
    while fastest > TRUTH_WITHIN {
        assert!(ends.len() < WAKE_UPS, "the fastest wake-up took {fastest:?}");
        any_moment(&mut stage).await;
        driver.suspend();
        stage.server.wait_for_machines(&[], stage.terms.ttl + SWEEP).await;
        let start = Instant::now();
        driver.resume();
        driver.is_in(MACHINE, "active", start, LONG).await;
        fastest = fastest.min(start.elapsed());
        ends.push("expired");
    }
    stage.close(driver).await;
    ends.push("released");
    stage.server.wait_for_ends(MACHINE, &ends, SWEEP).await;
    stage.finish().await;
}

pub(crate) async fn the_seat_of_a_killed_program_is_free_after_the_ttl(cast: Cast) {
    let mut stage = stage(cast, one_seat(3)).await;
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
