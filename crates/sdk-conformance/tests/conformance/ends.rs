//! Ends of seats: by an operator, and by the program.

use std::time::{Duration, Instant};

use seatkeeper_sdk_conformance::driver::{Driver, LONG, Told};
use seatkeeper_sdk_conformance::exchange::{Exchange, Kind};
use seatkeeper_sdk_conformance::proxy::Fault;
use seatkeeper_sdk_conformance::stage::{Access, Cast, Stage};
use serde_json::json;
use tokio::time::sleep;

use crate::{any_moment, one_seat, stage};

/// The machine of these scenarios.
const MACHINE: &str = "m-1";

/// The longest time from the end of a session to the client's word, with an event stream.
const STREAM_LIMIT: Duration = Duration::from_secs(1);

/// The longest time from a release to the free seat. Other programs on the host may delay single releases, so the
/// scenarios compare the fastest of [`RELEASES`].
const RELEASE_LIMIT: Duration = Duration::from_millis(200);
const RELEASES: usize = 3;

/// The lateness of a heartbeat on a busy host.
const BUSY: Duration = Duration::from_secs(2);

/// Waits for the loss, and checks the reason, the time, and that the loss is told once.
async fn lost(stage: &Stage, driver: &Driver, since: Instant, reason: &str, limit: Duration) -> Told {
    let lost = driver.told(MACHINE, "lost", since, LONG).await;
    let took = lost.at.duration_since(since);
    assert_eq!((lost.reason.as_deref(), lost.retry), (Some(reason), false), "{}", driver.story());
    assert!(took <= limit, "the loss was told after {took:?}, not within {limit:?}");
    // A loss that is told again would be told by the next heartbeat.
    sleep(2 * stage.interval()).await;
    let transcript = driver.transcript();
    let losses = transcript.told_to(MACHINE).filter(|told| told.kind == "lost").count();
    assert_eq!(losses, 1, "{}", driver.story());
    assert_eq!(stage.server.live_machines().await, Vec::<String>::new(), "the client took the seat again");
    lost
}

/// Waits until the client listens to the event stream of its seat.
async fn listens(stage: &Stage) {
    let start = Instant::now();
    let is_open = |exchange: &Exchange| exchange.kind == Kind::Events && exchange.reply.is_some();
    while !stage.proxy.exchanges().iter().any(is_open) {
        assert!(start.elapsed() < LONG, "the client opens no event stream");
        sleep(Duration::from_millis(10)).await;
    }
}

pub(crate) async fn a_suspended_license_ends_the_seat(cast: Cast) {
    let mut stage = stage(cast, one_seat(3)).await;
    let driver = stage.driver(Access::Token, true).await;
    stage.acquire(&driver, MACHINE).await;
    listens(&stage).await;
    any_moment(&mut stage).await;
    let start = Instant::now();
    stage.server.update_license(&stage.license_id, &json!({"status": "suspended"})).await;
    lost(&stage, &driver, start, "entitlement_ended", STREAM_LIMIT).await;
    stage.close(driver).await;
    stage.server.wait_for_ends(MACHINE, &["entitlement_ended"], LONG).await;
    stage.finish().await;
}

pub(crate) async fn a_revoked_session_is_told_by_the_stream(cast: Cast) {
    let mut stage = stage(cast, one_seat(15)).await;
    let driver = stage.driver(Access::Token, true).await;
    let session = stage.acquire(&driver, MACHINE).await;
    listens(&stage).await;
    let start = Instant::now();
    stage.server.revoke(&session).await;
    lost(&stage, &driver, start, "revoked", STREAM_LIMIT).await;
    stage.close(driver).await;
    stage.finish().await;
}

pub(crate) async fn a_revoked_session_is_told_by_the_next_heartbeat(cast: Cast) {
    let mut stage = stage(cast, one_seat(3)).await;
    let driver = stage.driver(Access::LicenseKey, false).await;
    let session = stage.acquire(&driver, MACHINE).await;
    any_moment(&mut stage).await;
    let start = Instant::now();
    stage.server.revoke(&session).await;
    let revoked = Instant::now();
    lost(&stage, &driver, start, "revoked", stage.interval() + BUSY).await;
    let exchanges = stage.proxy.exchanges();
    let later = |exchange: &&Exchange| exchange.kind == Kind::Heartbeat && exchange.begun > revoked;
    assert!(exchanges.iter().filter(later).count() <= 1, "the first heartbeat after the revocation tells it");
    let has_stream = exchanges.iter().any(|exchange| exchange.kind == Kind::Events);
    assert!(!has_stream, "the client opened an event stream that was turned off");
    stage.close(driver).await;
    stage.finish().await;
}

/// A heartbeat under the lowered TTL tells the new interval, and the heartbeats after it keep the new interval.
pub(crate) async fn a_lowered_ttl_costs_nothing(cast: Cast) {
    const LOWERED: Duration = Duration::from_secs(3);
    let mut stage = stage(cast, one_seat(9)).await;
    let driver = stage.driver(Access::Token, true).await;
    stage.acquire(&driver, MACHINE).await;
    stage.server.update_license(&stage.license_id, &json!({"ttl_seconds": LOWERED.as_secs()})).await;
    let is_lowered = |exchange: &&Exchange| {
        let expires_in = exchange.reply.as_ref().and_then(|reply| reply.expires_in);
        exchange.kind == Kind::Heartbeat && expires_in.is_some_and(|expires_in| expires_in <= LOWERED)
    };
    let start = Instant::now();
    let (first, last) = loop {
        let exchanges = stage.proxy.exchanges();
        let lowered: Vec<_> = exchanges.iter().filter(is_lowered).map(|exchange| exchange.begun).collect();
        if let [first, _, _, last, ..] = lowered[..] {
            break (first, last);
        }
        assert!(start.elapsed() < LONG, "{} heartbeats under the lowered TTL", lowered.len());
        sleep(Duration::from_millis(10)).await;
    };
    // Three intervals under the lowered TTL. Three under the first TTL are thrice as long.
    assert!(last - first <= LOWERED + BUSY, "four heartbeats in {:?}", last - first);
    assert_eq!(driver.transcript().kinds(MACHINE), ["active"], "{}", driver.story());
    stage.close(driver).await;
    assert_eq!(stage.server.audit().await.admissions(MACHINE), 1);
    stage.server.wait_for_ends(MACHINE, &["released"], LONG).await;
    stage.finish().await;
}

pub(crate) async fn a_lost_reply_to_a_release_frees_the_seat(cast: Cast) {
    let mut stage = stage(cast, one_seat(5)).await;
    let driver = stage.driver(Access::Token, true).await;
    stage.acquire(&driver, MACHINE).await;
    any_moment(&mut stage).await;
    stage.proxy.lose_reply(Kind::Release);
    assert!(driver.release(MACHINE).await, "the second try confirms the release");
    let releases = stage.proxy.exchanges().iter().filter(|exchange| exchange.kind == Kind::Release).count();
    assert_eq!(releases, 2, "one retry");
    assert_eq!(stage.server.live_machines().await, Vec::<String>::new());
    sleep(stage.interval()).await;
    stage.close(driver).await;
    stage.server.wait_for_ends(MACHINE, &["released"], LONG).await;
    stage.finish().await;
}

pub(crate) async fn a_release_frees_the_seat(cast: Cast) {
    let mut stage = stage(cast, one_seat(5)).await;
    let driver = stage.driver(Access::Token, true).await;
    let mut fastest = Duration::MAX;
    for release in 0..RELEASES {
        let machine = format!("m-{release}");
        stage.acquire(&driver, &machine).await;
        any_moment(&mut stage).await;
        let start = Instant::now();
        let (confirmed, free) =
            tokio::join!(driver.release(&machine), stage.server.wait_for_machines(&[], LONG));
        assert!(confirmed, "the server answered the release");
        fastest = fastest.min(free - start);
        // A heartbeat after the release breaks an invariant.
        sleep(stage.interval()).await;
    }
    assert!(fastest <= RELEASE_LIMIT, "the seat was free after {fastest:?}");
    stage.close(driver).await;
    stage.finish().await;
}

pub(crate) async fn a_close_frees_the_seat(cast: Cast) {
    let mut stage = stage(cast, one_seat(5)).await;
    let mut fastest = Duration::MAX;
    for release in 0..RELEASES {
        let machine = format!("m-{release}");
        let driver = stage.driver(Access::Token, true).await;
        stage.acquire(&driver, &machine).await;
        any_moment(&mut stage).await;
        let start = Instant::now();
        let free = stage.server.wait_for_machines(&[], LONG);
        let (free, ()) = tokio::join!(free, driver.close_client());
        fastest = fastest.min(free - start);
        if release == RELEASES - 1 {
            // The check of the invariants finds a heartbeat after the close.
            sleep(2 * stage.interval()).await;
        }
        stage.close(driver).await;
    }
    assert!(fastest <= RELEASE_LIMIT, "the seat was free after {fastest:?}");
    stage.finish().await;
}

pub(crate) async fn a_release_in_an_outage_ends_in_time(cast: Cast) {
    let mut stage = stage(cast, one_seat(3)).await;
    let driver = stage.driver(Access::Token, true).await;
    stage.acquire(&driver, MACHINE).await;
    stage.proxy.set(Fault::BlackHole);
    any_moment(&mut stage).await;
    let start = Instant::now();
    assert!(!driver.release(MACHINE).await, "nobody confirmed the release");
    let took = start.elapsed();
    assert!(took <= Duration::from_millis(2500), "the release took {took:?}, not two seconds");
    stage.server.wait_for_machines(&[], stage.terms.ttl + Duration::from_secs(2)).await;
    stage.proxy.set(Fault::Pass);
    sleep(2 * stage.interval()).await;
    stage.close(driver).await;
    stage.server.wait_for_ends(MACHINE, &["expired"], LONG).await;
    stage.finish().await;
}
