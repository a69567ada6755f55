//! Changes of the server's certificate while a seat is held.

use std::time::{Duration, Instant};

use seatkeeper_sdk_conformance::driver::LONG;
use seatkeeper_sdk_conformance::proxy::Identity;
use seatkeeper_sdk_conformance::stage::{Access, Cast, Stage};
use seatkeeper_testbed::authority::Authority;

use crate::conformance::faults::{MACHINE, survived};
use crate::{any_moment, one_seat, until};

/// Returns the certificate `name` of an authority.
fn identity(authority: &Authority, name: &str) -> Identity {
    authority.sign(name);
    Identity::from_files(&authority.path(&format!("{name}.pem")), &authority.path(&format!("{name}.key")))
}

/// Starts a stage whose clients trust `authority` alone.
async fn stage(cast: Cast, authority: &Authority, seconds: u64) -> Stage {
    let first = identity(authority, "first");
    Stage::start_with_tls(cast, one_seat(seconds), &first, authority.path("ca.pem")).await
}

pub(crate) async fn a_new_certificate_costs_nothing(cast: Cast) {
    let authority = Authority::new();
    let mut stage = stage(cast, &authority, 5).await;
    let driver = stage.driver(Access::Token, true).await;
    stage.acquire(&driver, MACHINE).await;
    any_moment(&mut stage).await;
    stage.proxy.present(&identity(&authority, "second"));
    survived(&mut stage, driver, Instant::now()).await;
    stage.finish().await;
}

/// A certificate of an authority that the client does not trust gets no word of the client, so the seat is lost by its
/// deadline. The right certificate ends the outage.
pub(crate) async fn a_certificate_of_a_stranger_is_an_outage(cast: Cast) {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let mut stage = stage(cast, &authority, 3).await;
    let driver = stage.driver(Access::Token, true).await;
    stage.acquire(&driver, MACHINE).await;
    any_moment(&mut stage).await;
    let start = Instant::now();
    stage.proxy.present(&identity(&stranger, "stranger"));
    let presented = Instant::now();
    let lost = driver.told(MACHINE, "lost", start, stage.terms.ttl + Duration::from_secs(2)).await;
    assert_eq!((lost.reason.as_deref(), lost.retry), (Some("deadline"), true), "{}", driver.story());
    until(start + 2 * stage.terms.ttl).await;
    let spoken = stage.proxy.exchanges().iter().filter(|exchange| exchange.begun > presented).count();
    assert_eq!(spoken, 0, "the client speaks with a stranger");
    let end = Instant::now();
    stage.proxy.present(&identity(&authority, "third"));
    driver.told(MACHINE, "active", end, LONG).await;
    stage.close(driver).await;
    stage.server.wait_for_ends(MACHINE, &["expired", "released"], LONG).await;
    stage.finish().await;
}
