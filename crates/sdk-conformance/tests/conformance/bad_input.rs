//! Requests that the server refuses: each is a typed error at once, and the client goes on.

use std::time::{Duration, Instant};

use seatkeeper_sdk_conformance::driver::{Driver, LONG};
use seatkeeper_sdk_conformance::proxy::{Canned, Fault};
use seatkeeper_sdk_conformance::stage::{Access, Cast};
use serde_json::Value;
use tokio::time::sleep;

use crate::{one_seat, stage};

/// The machine of these scenarios.
const MACHINE: &str = "m-1";

/// The time until a refusal is told, on a busy host: half of the patience for a server that does not answer.
const AT_ONCE: Duration = Duration::from_secs(10);

/// The answer of a server without the operation, because its version is another than the client's.
const OTHER_VERSION: Canned = Canned {
    status: 404,
    retry_after: None,
    content_type: "application/problem+json",
    body: r#"{"type":"/problems/not-found","title":"Nothing is here","status":404,"detail":"Another version."}"#,
};

/// Asks for a seat, and checks the code of the refusal.
async fn is_refused(driver: &Driver, request: Value, code: &str) {
    let start = Instant::now();
    let answer = driver.answer(driver.send("acquire", request), LONG).await;
    assert_eq!(answer["error"]["code"], code, "{answer}");
    assert!(start.elapsed() < AT_ONCE, "{code} took {:?}", start.elapsed());
}

pub(crate) async fn bad_input_is_a_typed_error(cast: Cast) {
    let mut stage = stage(cast, one_seat(5)).await;
    stage.write_token("1s").await;
    sleep(Duration::from_secs(2)).await;
    let driver = stage.driver(Access::File, true).await;
    is_refused(&driver, stage.request(MACHINE, None), "unauthenticated").await;
    stage.write_token("1h").await;
    let mut request = stage.request(MACHINE, None);
    request["license_key"] = "NO-SUCH-KEY".into();
    is_refused(&driver, request, "license-not-found").await;
    stage.proxy.set(Fault::Answer(OTHER_VERSION));
    is_refused(&driver, stage.request(MACHINE, None), "not-found").await;
    stage.proxy.set(Fault::Pass);
    stage.acquire(&driver, MACHINE).await;
    stage.close(driver).await;
    stage.finish().await;
}
