//! Runs against a small server that keeps its promises, and against a faulty server.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on fails, and says with which seed"
)]

mod support;

use std::time::Duration;

use http::Method;
use seatkeeper_load::{Bounds, Error, FixedRequest, Operation, Plan, Report, Scenario, run};
use support::{FakeServer, Fault};

/// More time than any run of these tests takes.
const DURATION_AMPLE: Duration = Duration::from_secs(60);

fn plan(server: &FakeServer, license: &str, scenario: Scenario, turns: u64) -> Plan {
    Plan {
        target: server.target(),
        license_keys: vec![license.to_owned()],
        concurrency: 8,
        bounds: Bounds { duration: DURATION_AMPLE, turns: Some(turns) },
        scenario,
    }
}

async fn report(fault: Fault, license: &str, scenario: Scenario, turns: u64) -> Report {
    let server = FakeServer::start(fault).await;
    run(plan(&server, license, scenario, turns), |_| ()).await.unwrap()
}

fn requests(report: &Report, operation: Operation) -> u64 {
    report.operation(operation).map_or(0, |operation| operation.requests)
}

#[tokio::test]
async fn heartbeats_are_all_that_is_measured_of_held_seats() {
    let scenario = Scenario::Heartbeats { sessions_per_connection: 2 };
    let report = report(Fault::None, "16:60", scenario, 1_000).await;
    assert_eq!(requests(&report, Operation::Heartbeat), 1_000);
    assert_eq!(report.requests, 1_000);
    assert_eq!(report.errors_total(), 0);
    assert_eq!(report.violations.count, 0, "{:?}", report.violations.first);
}

#[tokio::test]
async fn a_license_is_filled_before_denials_are_measured() {
    let report = report(Fault::None, "3:60", Scenario::Denied, 1_000).await;
    assert_eq!(requests(&report, Operation::Denied), 1_000);
    assert_eq!(report.requests, 1_000);
    assert_eq!(report.violations.count, 0, "{:?}", report.violations.first);
}

#[tokio::test]
async fn a_license_is_kept_full_while_denials_outlast_its_ttl() {
    let server = FakeServer::start(Fault::None).await;
    let mut plan = plan(&server, "3:1", Scenario::Denied, u64::MAX);
    plan.bounds.duration = Duration::from_millis(1_500);
    let report = run(plan, |_| ()).await.unwrap();
    assert_eq!(requests(&report, Operation::Acquire), 0);
    assert!(requests(&report, Operation::Heartbeat) >= 3);
    assert_eq!(report.errors_total(), 0);
}

#[tokio::test]
async fn a_turn_of_a_cycle_is_a_whole_cycle() {
    let report = report(Fault::None, "8:60", Scenario::Cycle { heartbeats: 2 }, 100).await;
    assert_eq!(requests(&report, Operation::Acquire), 100);
    assert_eq!(requests(&report, Operation::Heartbeat), 200);
    assert_eq!(requests(&report, Operation::Release), 100);
    assert_eq!(report.violations.count, 0, "{:?}", report.violations.first);
}

#[tokio::test]
async fn a_server_that_admits_one_too_many_is_caught() {
    let report = report(Fault::AdmitsOneTooMany, "3:60", Scenario::Cycle { heartbeats: 2 }, 1_000).await;
    assert!(report.violations.count > 0);
    assert!(report.violations.first[0].contains("4 sessions were held at once, the limit is 3"));
}

#[tokio::test]
async fn a_server_that_forgets_heartbeats_is_caught() {
    let server = FakeServer::start(Fault::ForgetsHeartbeats).await;
    let scenario = Scenario::Heartbeats { sessions_per_connection: 1 };
    let mut plan = plan(&server, "8:1", scenario, u64::MAX);
    plan.bounds.duration = Duration::from_millis(1_300);
    let report = run(plan, |_| ()).await.unwrap();
    assert!(report.errors.contains_key("410"));
    assert!(report.violations.first[0].contains("was ended although renewed in time"));
}

#[tokio::test]
async fn what_a_run_held_is_given_back() {
    let server = FakeServer::start(Fault::None).await;
    let scenario = Scenario::Heartbeats { sessions_per_connection: 2 };
    for _ in 0..2 {
        run(plan(&server, "16:60", scenario.clone(), 10), |_| ()).await.unwrap();
    }
}

#[tokio::test]
async fn a_wrong_status_is_counted_as_an_error() {
    let request = |status_expected| {
        Scenario::Fixed(FixedRequest {
            method: Method::GET,
            path: "/nothing/here".to_owned(),
            body: String::new(),
            status_expected,
        })
    };
    let wrong = report(Fault::None, "1:60", request(200), 10).await;
    assert_eq!(wrong.errors.get("404"), Some(&10));
    assert_eq!(requests(&wrong, Operation::Fixed), 0);
    let right = report(Fault::None, "1:60", request(404), 10).await;
    assert_eq!(requests(&right, Operation::Fixed), 10);
}

#[tokio::test]
async fn a_run_ends_when_its_time_is_over_and_tells_how_it_stands() {
    let server = FakeServer::start(Fault::None).await;
    let mut plan = plan(&server, "8:60", Scenario::Cycle { heartbeats: 1 }, u64::MAX);
    plan.bounds.duration = Duration::from_millis(700);
    let mut told = Vec::new();
    let report = run(plan, |progress| told.push(progress)).await.unwrap();
    assert!(report.elapsed_seconds >= 0.7);
    assert!(told.last().unwrap().requests > 0);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_said_before_anything_is_measured() {
    let server = FakeServer::start(Fault::None).await;
    let mut plan = plan(&server, "8:60", Scenario::Denied, 1);
    // Port 9 (discard) has no listener.
    plan.target = seatkeeper_load::Target::new("127.0.0.1:9", None).unwrap();
    let error = run(plan, |_| ()).await.unwrap_err();
    assert!(matches!(error, Error::Unprepared { doing: "acquire", .. }), "{error}");
}

#[tokio::test]
async fn a_license_with_too_few_seats_is_said_before_anything_is_measured() {
    let server = FakeServer::start(Fault::None).await;
    let scenario = Scenario::Heartbeats { sessions_per_connection: 2 };
    let error = run(plan(&server, "15:60", scenario, 1), |_| ()).await.unwrap_err();
    assert!(matches!(error, Error::TooFewSeats { wanted: 2 }), "{error}");
}

#[test]
fn an_address_is_a_host_and_a_port() {
    let plain = [
        "127.0.0.1:8080",
        "http://127.0.0.1:8080",
        "http://localhost:8080/",
        "http://localhost",
        "[::1]:8080",
    ];
    for good in plain {
        seatkeeper_load::Target::new(good, None).unwrap();
    }
    for bad in ["", "localhost", "https://localhost:8080", "http://localhost:8080/path", ":8080"] {
        let error = seatkeeper_load::Target::new(bad, None).unwrap_err();
        assert!(matches!(error, Error::BadAddress { .. }), "{bad}");
    }
    let no_certificates = Some(&b""[..]);
    for good in ["https://localhost", "https://localhost:8443/", "https://127.0.0.1:8443", "https://[::1]"] {
        seatkeeper_load::Target::secured(good, None, no_certificates).unwrap();
    }
    for bad in ["localhost:8443", "http://localhost:8443", "https://", "https://localhost/path"] {
        let error = seatkeeper_load::Target::secured(bad, None, no_certificates).unwrap_err();
        assert!(matches!(error, Error::BadAddress { .. }), "{bad}");
    }
}
