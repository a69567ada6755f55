//! Tokens that end while a seat is held.

use std::time::{Duration, Instant};

use seatkeeper_sdk_conformance::driver::LONG;
use seatkeeper_sdk_conformance::exchange::{Exchange, Kind};
use seatkeeper_sdk_conformance::proxy::Canned;
use seatkeeper_sdk_conformance::stage::{Access, Cast, Stage};
use tokio::time::sleep;

use crate::{one_seat, stage};

/// The machine of these scenarios.
const MACHINE: &str = "m-1";

/// Waits until the proxy has seen an exchange that fits.
async fn seen(stage: &Stage, what: &str, fits: impl Fn(&Exchange) -> bool) -> Instant {
    let start = Instant::now();
    loop {
        if let Some(exchange) = stage.proxy.exchanges().iter().find(|exchange| fits(exchange)) {
            return exchange.begun;
        }
        assert!(start.elapsed() < LONG, "{what} was not seen");
        sleep(Duration::from_millis(10)).await;
    }
}

fn status(exchange: &Exchange) -> u16 {
    exchange.reply.as_ref().map_or(0, |reply| reply.status)
}

/// A client that watches the file never shows the old token to the server; another client hears one 401 to a
/// heartbeat.
pub(crate) async fn a_token_that_expires_is_read_again(cast: Cast) {
    const LIFE: Duration = Duration::from_secs(3);
    let mut stage = stage(cast, one_seat(5)).await;
    // The first request reads the file.
    let driver = stage.driver(Access::File, true).await;
    stage.write_token("3s").await;
    let old_token_ends = Instant::now() + LIFE;
    stage.acquire(&driver, MACHINE).await;
    // The file has a new token before the first token ends.
    stage.write_token("1h").await;
    let is_renewal = |exchange: &Exchange| exchange.begun > old_token_ends && exchange.deadline().is_some();
    seen(&stage, "a renewal with the new token", is_renewal).await;
    let exchanges = stage.proxy.exchanges();
    let is_rejected = |exchange: &&Exchange| exchange.kind == Kind::Heartbeat && status(exchange) == 401;
    let rejected = exchanges.iter().filter(is_rejected).count();
    assert!(rejected <= 1, "the server has rejected {rejected} heartbeats");
    assert_eq!(driver.transcript().kinds(MACHINE), ["active"], "{}", driver.story());
    stage.close(driver).await;
    assert_eq!(stage.server.audit().await.admissions(MACHINE), 1);
    stage.finish().await;
}

pub(crate) async fn a_rejected_license_token_is_replaced(cast: Cast) {
    let mut stage = stage(cast, one_seat(5)).await;
    let driver = stage.driver(Access::LicenseKey, true).await;
    stage.acquire(&driver, MACHINE).await;
    let tokens = |stage: &Stage| {
        stage.proxy.exchanges().iter().filter(|exchange| exchange.kind == Kind::Token).count()
    };
    assert_eq!(tokens(&stage), 1, "one license token serves the seat");
    let body = r#"{"type":"https://seatkeeper.dev/problems/unauthenticated","title":"no","status":401}"#;
    let content_type = "application/problem+json";
    stage.proxy.answer_next(Kind::Heartbeat, Canned { status: 401, retry_after: None, content_type, body });
    let is_rejected = |exchange: &Exchange| exchange.kind == Kind::Heartbeat && status(exchange) == 401;
    let rejected = seen(&stage, "a rejected heartbeat", is_rejected).await;
    let is_renewal = |exchange: &Exchange| exchange.begun > rejected && exchange.deadline().is_some();
    seen(&stage, "a renewal with the new token", is_renewal).await;
    assert_eq!(tokens(&stage), 2, "one license token replaces the rejected one");
    assert_eq!(driver.transcript().kinds(MACHINE), ["active"], "{}", driver.story());
    stage.close(driver).await;
    stage.finish().await;
}
