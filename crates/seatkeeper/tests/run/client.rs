//! The Rust client against a real server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use seatkeeper_client::{CheckError, Client, Error, Failure, Finish, LossReason, State, TokenError, Wait};
use seatkeeper_testbed::authority::Authority;
use seatkeeper_testbed::port;
use seatkeeper_testbed::proxy::{Network, Proxy};
use serde_json::json;

use crate::harness::Harness;
use crate::started::{license, live, recorded, until_live};

fn client(harness: &Harness) -> Client {
    Client::builder(harness.url()).token(harness.token("ann")).build().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_seat_is_held_beyond_its_ttl_and_given_back() {
    let harness = Harness::open();
    let license = harness.license_with(json!({ "max_seats": 1, "ttl_seconds": 2 })).await;
    let key = license["license_key"].as_str().unwrap();
    let seat = client(&harness).license(key).machine("m1").acquire().await.unwrap();
    let session = seat.session_id().unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(seat.check(), Ok(()));
    assert_eq!(seat.session_id(), Some(session), "one session all along");
    assert_eq!(seat.release().await.unwrap(), Finish::GivenBack);
    until_live(&harness, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_full_license_is_a_typed_error_and_a_wait_ends_when_a_seat_is_free() {
    let harness = Harness::open();
    let license = harness.license_with(json!({ "max_seats": 1, "ttl_seconds": 2 })).await;
    let key = license["license_key"].as_str().unwrap();
    let client = client(&harness);
    let first = client.license(key).machine("m1").acquire().await.unwrap();
    let error = client.license(key).machine("m2").acquire().await.unwrap_err();
    let Error::Denied(problem) = error else { panic!("{error:?}") };
    assert_eq!((problem.code(), problem.status), ("license-full", 403));
    assert_eq!(problem.holders[0].machine_id, "m1");
    assert_eq!(problem.seats_total, Some(1));
    drop(first);
    let second = client.license(key).machine("m2").wait(Wait::For(Duration::from_secs(60))).acquire().await;
    assert_eq!(second.unwrap().check(), Ok(()));
    until_live(&harness, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_revoked_seat_is_told_to_those_who_watch_and_to_those_who_check() {
    let harness = Harness::open();
    let license = harness.license_with(json!({ "max_seats": 1, "ttl_seconds": 3 })).await;
    let seat = client(&harness).license(license["license_key"].as_str().unwrap()).machine("m1");
    let seat = seat.acquire().await.unwrap();
    let mut states = seat.watch();
    harness.command(&["sessions", "revoke", &seat.session_id().unwrap()]);
    let lost = tokio::time::timeout(
        Duration::from_secs(30),
        states.wait_for(|state| matches!(state, State::Lost(_))),
    );
    let State::Lost(loss) = lost.await.expect("in time").unwrap() else { panic!("no loss") };
    assert_eq!((&loss.reason, loss.retry), (&LossReason::Revoked, false));
    assert_eq!(seat.check(), Err(CheckError::Lost(loss)));
    assert_eq!(live(&harness).await.len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_rejected_token_is_fetched_again_once_for_all_seats() {
    let harness = Harness::open();
    let key = license(&harness, 20).await;
    let (good, calls) = (harness.token("ann"), Arc::new(AtomicUsize::new(0)));
    let counted = calls.clone();
    let source = move || {
        let call = counted.fetch_add(1, Ordering::SeqCst);
        let token = if call == 0 { "stale".to_owned() } else { good.clone() };
        async move {
            tokio::time::sleep(Duration::from_millis(200)).await;
            Ok::<_, TokenError>(token)
        }
    };
    let client = Client::builder(harness.url()).token_source(source).build().unwrap();
    let acquire = |number: usize| client.license(key.as_str()).machine(format!("m{number}")).acquire();
    let seats: Vec<_> = (0..20).map(|number| tokio::spawn(acquire(number))).collect();
    for seat in seats {
        // The returned seat is dropped at once, and thereby released.
        seat.await.unwrap().unwrap();
    }
    assert_eq!(calls.load(Ordering::SeqCst), 2);
    until_live(&harness, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_dropped_acquire_leaves_no_seat() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    let client = client(&harness);
    for _ in 0..20 {
        let acquire = client.license(key.as_str()).machine("m1").acquire();
        let _ = tokio::time::timeout(Duration::from_millis(2), acquire).await;
    }
    until_live(&harness, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_page_on_clients_shows_a_program_that_works() {
    let page = include_str!("../../../../docs/clients.md");
    let (_, block) = page.split_once("```rust\n").expect("a program");
    let (program, _) = block.split_once("```").expect("the program's end");
    assert_eq!(
        program,
        include_str!("example.rs"),
        "docs/clients.md shows another program than the one tried"
    );
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    crate::example::work_with_a_seat(harness.url(), &harness.token("ann"), &key).await.unwrap();
    until_live(&harness, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_server_out_of_reach_and_a_wrong_address_are_errors() {
    let closed = Client::builder(format!("http://127.0.0.1:{}", port::free())).token("t").build().unwrap();
    let request = closed.license("K").machine("m1").patience(Duration::from_millis(300));
    let error = request.acquire().await.unwrap_err();
    assert!(matches!(error, Error::Offline { failure: Failure::Refused, .. }), "{error:?}");
    for address in ["ftp://x", "localhost:8080", "", "http:"] {
        let error = Client::builder(address).build().unwrap_err();
        assert!(matches!(error, Error::Address { .. }), "{address}: {error:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_certificate_of_an_unknown_authority_is_named() {
    let (papers, strangers) = (Authority::new(), Authority::new());
    papers.sign("server");
    let (cert, key) = (papers.path("server.pem"), papers.path("server.key"));
    let harness = Harness::open_with(&[
        ("SERVER_TLS_CERT_FILE", cert.to_str().unwrap()),
        ("SERVER_TLS_KEY_FILE", key.to_str().unwrap()),
    ]);
    let trusting = |authority: &Authority| {
        let pem = std::fs::read(authority.path("ca.pem")).unwrap();
        let builder = Client::builder(harness.url()).token(harness.token("ann")).certificates(pem);
        builder.build().unwrap().license("K").machine("m1").patience(Duration::ZERO).acquire()
    };
    let error = trusting(&strangers).await.unwrap_err();
    assert!(matches!(error, Error::Offline { failure: Failure::Certificate, .. }), "{error:?}");
    let said = error.to_string();
    assert!(said.contains("certificate was not accepted") && said.contains("CA file"), "{said}");
    let Error::Denied(problem) = trusting(&papers).await.unwrap_err() else { panic!("no answer") };
    assert_eq!(problem.code(), "license-not-found");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_wake_asks_the_server_at_once() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    let server = harness.url().trim_start_matches("http://").parse().unwrap();
    let proxy = Proxy::start(server, 1).await;
    let address = format!("http://{}", proxy.address());
    let client = Client::builder(address).token(harness.token("ann")).build().unwrap();
    let seat = client.license(key).machine("m1").acquire().await.unwrap();
    let mut states = seat.watch();
    proxy.set(Network::AnswersWait);
    client.wake();
    states.wait_for(|state| matches!(state, State::Offline { .. })).await.unwrap();
    proxy.set(Network::Well);
    states.wait_for(|state| matches!(state, State::Active { .. })).await.unwrap();
    assert_eq!(client.close().await.unwrap(), Finish::GivenBack);
    assert_eq!(live(&harness).await.len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_program_keeps_the_seat_of_another_program_that_pauses() {
    let harness = Harness::open();
    let ttl = Duration::from_secs(2);
    let license = harness.license_with(json!({ "max_seats": 1, "ttl_seconds": ttl.as_secs() })).await;
    let key = license["license_key"].as_str().unwrap();
    let (first, second) = (client(&harness), client(&harness));
    let seat = first.license(key).machine("m1").acquire().await.unwrap();
    let states = seat.watch();
    let session = seat.session_id();
    first.pause().await.unwrap();
    let kept = second.license(key).machine("m1").acquire().await.unwrap();
    assert_eq!(kept.session_id(), session);
    tokio::time::sleep(ttl * 2).await;
    assert!(!states.has_changed().unwrap(), "a paused client tells nothing: {:?}", seat.state());
    assert_eq!(seat.check(), Err(CheckError::Unconfirmed), "the deadline has passed");
    first.wake();
    let mut states = states;
    states.changed().await.unwrap();
    states.wait_for(|state| matches!(state, State::Active { .. })).await.unwrap();
    kept.leave();
    tokio::time::sleep(ttl * 2).await;
    assert_eq!(
        (seat.check(), seat.session_id()),
        (Ok(()), session),
        "a program that leaves releases nothing"
    );
    assert_eq!(seat.release().await.unwrap(), Finish::GivenBack);
    assert_eq!(recorded(&harness, "admitted").await, 1);
    until_live(&harness, 0).await;
}
