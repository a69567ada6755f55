//! Times of events, and the price of a check.

use std::time::{Duration, Instant};

use seatkeeper_sdk_conformance::driver::LONG;
use seatkeeper_sdk_conformance::language::Language;
use seatkeeper_sdk_conformance::stage::Access;
use serde_json::json;
use tokio::time::sleep;

use crate::{close, print, stage};

/// The machine of these measurements.
const MACHINE: &str = "m-1";
/// The number of measurements, of which the median counts.
const ROUNDS: usize = 5;
/// The time for a client to open its event stream after the acquire.
const SETTLING: Duration = Duration::from_secs(1);

/// Returns the median in milliseconds.
fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}

pub(crate) async fn time_to_the_free_seat_after_a_close(language: Language) {
    let mut stage = stage(language, 1, 60).await;
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let driver = stage.driver(Access::Token, true).await;
        stage.acquire(&driver, MACHINE).await;
        sleep(SETTLING).await;
        let start = Instant::now();
        driver.send("close", json!({}));
        times.push(stage.server.wait_for_machines(&[], LONG).await - start);
        stage.close(driver).await;
    }
    print(language, "seat free after close", median(times), 200.0, "ms");
}

/// The target is the TTL, and the time in which the server notices its end.
pub(crate) async fn time_to_the_free_seat_after_a_kill(language: Language) {
    const TTL_SECONDS: u64 = 3;
    let mut stage = stage(language, 1, TTL_SECONDS).await;
    let mut driver = stage.driver(Access::Token, true).await;
    stage.acquire(&driver, MACHINE).await;
    sleep(SETTLING).await;
    let start = Instant::now();
    driver.kill().await;
    let free = stage.server.wait_for_machines(&[], LONG).await - start;
    print(language, "seat free after kill -9, TTL 3 s", median(vec![free]), 3000.0, "ms");
}

pub(crate) async fn time_to_the_word_of_a_loss(language: Language) {
    let mut stage = stage(language, 1, 60).await;
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let driver = stage.driver(Access::Token, true).await;
        let session = stage.acquire(&driver, MACHINE).await;
        sleep(SETTLING).await;
        let start = Instant::now();
        stage.server.revoke(&session).await;
        times.push(driver.told(MACHINE, "lost", start, LONG).await.at - start);
        stage.close(driver).await;
    }
    print(language, "loss told by stream", median(times), 1000.0, "ms");
}

/// Stops the program past the end of its seat. The first truth after the wake-up is the seat, acquired again.
pub(crate) async fn time_to_the_truth_after_a_wake_up(language: Language) {
    let mut stage = stage(language, 1, 3).await;
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let driver = stage.driver(Access::Token, true).await;
        stage.acquire(&driver, MACHINE).await;
        driver.suspend();
        stage.server.wait_for_machines(&[], LONG).await;
        let start = Instant::now();
        driver.resume();
        times.push(driver.is_in(MACHINE, "active", start, LONG).await.answered - start);
        stage.close(driver).await;
    }
    print(language, "truth after a wake-up", median(times), 2000.0, "ms");
}

pub(crate) async fn price_of_a_check(language: Language) {
    let target = match language {
        Language::Rust | Language::C => 50.0,
        Language::Go => 200.0,
        Language::Python | Language::TypeScript => 1000.0,
    };
    let mut stage = stage(language, 1, 60).await;
    let driver = stage.driver(Access::Token, true).await;
    stage.acquire(&driver, MACHINE).await;
    let answer = driver.call("check", json!({"seat": MACHINE, "calls": 200_000}), LONG).await;
    print(language, "check", answer["nanoseconds"].as_f64().expect("a price"), target, "ns");
    close(stage, driver).await;
}
