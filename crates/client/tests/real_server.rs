//! The client against a real server: with `SDK_TEST_SERVER` set to the path of the server's binary.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

mod process;
mod server;

use std::time::{Duration, Instant};

use seatkeeper_client::{Client, DeviceType, Error, Finish, Loss, LossReason, Seat, State};

use process::Process;
use server::Server;

/// A loss that a stream tells is told within this; heartbeats are much rarer.
const AT_ONCE: Duration = Duration::from_millis(1_500);

fn client(server: &Server, user: &str) -> Client {
    Client::builder(&server.url).token(server.token(user, "1h")).application("cad", "9").build().unwrap()
}

/// Waits until the stream of a seat is open at the server.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(500)).await;
}

async fn loss(seat: &Seat) -> Loss {
    let mut states = seat.watch();
    let lost = states.wait_for(|state| matches!(state, State::Lost(_)));
    let state = tokio::time::timeout(Duration::from_secs(30), lost).await.expect("in time").unwrap();
    let State::Lost(loss) = state else { panic!("{state:?}") };
    loss
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_seat_is_lost_at_once() {
    let server = Server::start();
    server.run(&["license", "create", "--key", "CAD", "--seats", "1", "--ttl-seconds", "600"]);
    let seat = client(&server, "ann").license("CAD").machine("m").acquire().await.unwrap();
    settle().await;
    let began = Instant::now();
    server.run(&["sessions", "revoke", &seat.session_id().unwrap()]);
    let revoked = Instant::now();
    assert_eq!(loss(&seat).await.reason, LossReason::Revoked);
    assert!(revoked.elapsed() < AT_ONCE, "{:?} of {:?}", revoked.elapsed(), began.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_seat_is_lost_at_once_beside_seats_that_share_its_stream() {
    let server = Server::start();
    server.run(&["license", "create", "--key", "CAD", "--seats", "3", "--ttl-seconds", "600"]);
    let client = client(&server, "ann");
    let acquire = |machine: &str| client.license("CAD").machine(machine).acquire();
    let seats = [acquire("m").await.unwrap(), acquire("n").await.unwrap(), acquire("o").await.unwrap()];
    settle().await;
    for (place, seat) in seats.iter().enumerate().rev() {
        server.run(&["sessions", "revoke", &seat.session_id().unwrap()]);
        let revoked = Instant::now();
        assert_eq!(loss(seat).await.reason, LossReason::Revoked);
        assert!(revoked.elapsed() < AT_ONCE, "{:?}", revoked.elapsed());
        assert!(seats[..place].iter().all(|seat| seat.check().is_ok()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_names_the_request_and_a_remedy() {
    let server = Server::start();
    server.run(&["license", "create", "--key", "CAD", "--seats", "1", "--ttl-seconds", "600"]);
    let client = client(&server, "ann");
    let seat = client.license("CAD").machine("m").acquire().await.unwrap();
    let full = client.license("CAD").machine("n").acquire().await.unwrap_err();
    assert!(full.request_id().is_some_and(|id| !id.is_empty()), "{full:?}");
    assert!(full.to_string().contains(". Remedy: wait for a seat"), "{full}");
    server.run(&["sessions", "revoke", &seat.session_id().unwrap()]);
    let lost = loss(&seat).await;
    assert!(lost.request_id.is_some_and(|id| !id.is_empty() && full.request_id() != Some(&*id)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seat_is_held_with_an_idle_time_and_its_program_is_on_record() {
    let server = Server::start();
    server.run(&["license", "create", "--key", "CAD", "--seats", "1", "--ttl-seconds", "2"]);
    let seat = client(&server, "ann").license("CAD").machine("m").acquire().await.unwrap();
    let session = seat.session_id();
    seat.activity();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!((seat.check(), seat.session_id()), (Ok(()), session));
    let live = server.run(&["sessions", "list", "--live", "--json"]);
    let wanted = concat!("cad/9 (rust/", env!("CARGO_PKG_VERSION"), ")");
    assert!(live.contains(wanted), "{live}");
    assert_eq!(seat.release().await.unwrap(), Finish::GivenBack);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_takes_over_a_screen_and_the_other_hears_of_it_at_once() {
    let server = Server::start();
    server.run(&["plan", "create", "single", "--devices", "1", "--when-full", "deny"]);
    server.run(&["subscription", "create", "--user", "ann", "--plan", "single"]);
    let client = client(&server, "ann");
    let tv = client.device("tv-0815", DeviceType::Tv).name("Living room").admit().await.unwrap();
    assert_eq!(tv.seats(), Some((1, 1)));
    settle().await;
    let phone = || client.device("phone", DeviceType::Mobile).name("Ann’s phone");
    let error = phone().admit().await.unwrap_err();
    let Error::Denied(problem) = error else { panic!("{error:?}") };
    assert_eq!(
        (problem.code(), problem.device_limit, problem.devices_in_use),
        ("devices-full", Some(1), Some(1))
    );
    let shown = &problem.sessions[0];
    assert_eq!(
        (shown.device_name.as_deref(), Some(&shown.session_id)),
        (Some("Living room"), tv.session_id().as_ref())
    );
    let phone = phone().replace(&shown.session_id).admit().await.unwrap();
    let admitted = Instant::now();
    let loss = loss(&tv).await;
    assert!(admitted.elapsed() < AT_ONCE, "{:?}", admitted.elapsed());
    assert_eq!(
        (loss.reason, loss.by.as_deref(), loss.retry),
        (LossReason::Evicted, Some("Ann’s phone"), false)
    );
    let session = phone.session_id().unwrap();
    drop(tv);
    let again = client.device("phone", DeviceType::Mobile).session(&session).admit().await.unwrap();
    assert_eq!(again.session_id(), Some(session), "the session goes on");
    assert_eq!(phone.check(), Ok(()));
    assert_eq!(again.release().await.unwrap(), Finish::GivenBack);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seat_whose_token_has_expired_is_given_back_by_its_code() {
    let server = Server::start();
    server.run(&["license", "create", "--key", "CAD", "--seats", "1", "--ttl-seconds", "600"]);
    let client = Client::builder(&server.url).token(server.token("ann", "3s")).build().unwrap();
    let seat = client.license("CAD").machine("workstation-7").acquire().await.unwrap();
    let live = || server.run(&["sessions", "list", "--live", "--json"]);
    assert!(live().contains("workstation-7"));
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(seat.release().await.unwrap(), Finish::Unconfirmed);
    assert!(!live().contains("workstation-7"), "{}", live());
}

#[tokio::test]
async fn child() {
    process::run_as_child().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_process_has_its_seat_again_and_the_audit_shows_no_second_one() {
    let server = Server::start();
    let create = ["license", "create", "--count-per", "process", "--seats", "1", "--ttl-seconds", "600"];
    server.run(&[&create[..], &["--key", "CAD"]].concat());
    let state = tempfile::TempDir::new().unwrap();
    let start = || {
        let mut command = Process::command(&server.url, &server.token("ann", "1h"), "CAD", 1);
        command.env("CHILD_STATE_DIR", state.path());
        Process::start(command)
    };
    let mut process = start();
    let instance = process.instances.clone();
    // The only seat is in use: a second process has a name of its own, so it gets no seat.
    assert_eq!(start().refused, ["license-full"]);
    for _ in 0..3 {
        process.kill();
        let killed = Instant::now();
        process = start();
        assert_eq!((&process.instances, &process.refused), (&instance, &Vec::new()));
        assert!(killed.elapsed() < Duration::from_secs(10), "{:?} of a TTL of 600 s", killed.elapsed());
    }
    let count = |arguments: &[&str], word: &str| server.run(arguments).matches(word).count();
    let audit = |action| count(&["audit", "list", "--json", "--action", action], "\"action\"");
    assert_eq!([audit("admitted"), audit("ended")], [1, 0], "one seat, from the first process to the last");
    assert_eq!(count(&["sessions", "list", "--json"], &instance[0]), 1);
    process.end();
    assert_eq!(count(&["sessions", "list", "--live", "--json"], "\"session_id\""), 0);
}
