//! A license key as the source of tokens, against a server of the test's own.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

mod scripted;

use std::time::Duration;

use seatkeeper_client::{Client, Error, Finish, LicenseKey};
use serde_json::{Value, json};

use scripted::{Arrived, Reply, Scripted};

const TOKEN: &str = "POST /api/v1/licenses/token";
const ACQUIRE: &str = "POST /api/v1/licenses/acquire";
const GRANT: &str = r#"{"session_id":"0198a0aa-0000-7000-8000-000000000001","expires_in_seconds":360}"#;

fn is_token(request: &Arrived) -> bool {
    request.target == TOKEN
}

/// Returns a token that names the machine, and the number of the token.
fn token(request: &Arrived, earlier: usize) -> Reply {
    let machine = request.body["machine_id"].as_str().unwrap();
    let body = json!({
        "token": format!("{machine}.{earlier}"), "token_type": "Bearer", "expires_in_seconds": 900,
    });
    Reply(200, "", body.to_string(), Duration::from_millis(100))
}

fn client(server: &Scripted) -> Client {
    let key = LicenseKey::new("CAD-2030-KEY").tenant("acme");
    Client::builder(&server.url).license_key(key).build().unwrap()
}

#[tokio::test]
async fn each_machine_has_a_token_and_one_request_serves_all_its_seats() {
    let server =
        Scripted::start(
            |request, earlier| {
                if is_token(request) { token(request, earlier) } else { Reply::new(201, GRANT) }
            },
        )
        .await;
    let client = client(&server);
    let acquire = |number: u32| {
        let request = client.license("CAD-2030-KEY").machine(format!("m{}", number % 2));
        tokio::spawn(request.instance(number.to_string()).acquire())
    };
    let seats: Vec<_> = (0..10).map(acquire).collect();
    for seat in seats {
        seat.await.unwrap().unwrap().release().await.unwrap();
    }
    let asked = server.arrived(TOKEN);
    assert_eq!(asked.len(), 2, "{asked:?}");
    for request in asked {
        let machine = &request.body["machine_id"];
        let wanted = json!({ "tenant": "acme", "license_key": "CAD-2030-KEY", "machine_id": machine });
        assert_eq!((request.body.clone(), request.token), (wanted, None));
    }
    for Arrived { token, body, .. } in server.arrived(ACQUIRE) {
        let token = token.unwrap();
        assert_eq!(Value::from(token.split('.').next().unwrap()), body["machine_id"]);
    }
}

#[tokio::test]
async fn a_rejected_license_token_is_replaced_once_for_all_seats_of_its_machine() {
    let server = Scripted::start(|request, earlier| match request.token.as_deref() {
        None => token(request, earlier),
        Some(stale) if stale.ends_with(".0") => Reply::new(401, "{}"),
        Some(_) => Reply::new(201, GRANT),
    })
    .await;
    let client = client(&server);
    let acquire = |number: u32| {
        let request = client.license("CAD-2030-KEY").machine("m");
        tokio::spawn(request.instance(number.to_string()).acquire())
    };
    let seats: Vec<_> = (0..10).map(acquire).collect();
    for seat in seats {
        seat.await.unwrap().unwrap().release().await.unwrap();
    }
    assert_eq!(server.arrived(TOKEN).len(), 2);
}

#[tokio::test]
async fn a_key_that_is_not_good_is_a_denial_that_names_the_remedy() {
    for (kind, remedy) in [("license-not-found", "--clients key"), ("not-found", "license_token_key_file")] {
        let problem = json!({ "type": format!("/problems/{kind}"), "title": "Not found", "status": 404 });
        let server = Scripted::start(move |_, _| Reply::new(404, problem.to_string())).await;
        let client = client(&server);
        let error = client.license("CAD-2030-KEY").machine("m").acquire().await.unwrap_err();
        assert!(matches!(error, Error::Denied(_)), "{error:?}");
        let said = format!("{error} {error:?}");
        assert_eq!(error.code(), kind);
        assert!(said.contains(remedy) && !said.contains("CAD-2030-KEY"), "{said}");
        assert_eq!((server.arrived(TOKEN).len(), server.arrived(ACQUIRE).len()), (1, 0));
    }
}

#[tokio::test]
async fn a_busy_issuer_is_asked_again_and_a_silent_one_is_offline() {
    let server = Scripted::start(|request, earlier| match (is_token(request), earlier) {
        (true, 0) => Reply(429, "Retry-After: 1\r\n", r#"{"title":"slow down"}"#.to_owned(), Duration::ZERO),
        (true, 1) => Reply::new(503, "{}"),
        (true, _) => token(request, earlier),
        (false, _) => Reply::new(201, GRANT),
    })
    .await;
    let client = client(&server);
    let seat = client.license("CAD-2030-KEY").machine("m").patience(Duration::from_secs(60)).acquire();
    seat.await.unwrap().release().await.unwrap();
    assert_eq!(server.arrived(TOKEN).len(), 3);
    let away = Client::builder("http://127.0.0.1:1").license_key("CAD-2030-KEY").build().unwrap();
    let request = away.license("CAD-2030-KEY").machine("m").patience(Duration::ZERO);
    let error = request.acquire().await.unwrap_err();
    assert!(matches!(error, Error::Offline { .. }), "{error:?}");
}

#[tokio::test]
async fn a_refused_token_is_no_word_on_a_held_session() {
    let server = Scripted::start(|request, earlier| match (is_token(request), earlier) {
        (true, 0) => token(request, earlier),
        (true, _) => Reply::new(404, r#"{"type":"/problems/license-not-found","title":"none"}"#),
        _ if request.target == ACQUIRE => Reply::new(
            201,
            r#"{"session_id":"0198a0aa-0000-7000-8000-000000000001","expires_in_seconds":3,"heartbeat_interval_seconds":1}"#,
        ),
        _ => Reply::new(401, "{}"),
    })
    .await;
    let client = client(&server);
    let seat = client.license("CAD-2030-KEY").machine("m").acquire().await.unwrap();
    while server.arrived(TOKEN).len() < 3 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(server.arrived(ACQUIRE).len(), 1);
    assert_eq!(seat.release().await.unwrap(), Finish::Unconfirmed);
}

#[tokio::test]
async fn a_key_that_is_closed_before_the_seat_is_a_denial_and_no_outage() {
    let server = Scripted::start(|request, earlier| match (is_token(request), earlier) {
        (true, 0) => token(request, earlier),
        (true, _) => Reply::new(404, r#"{"type":"/problems/license-not-found","title":"none"}"#),
        (false, _) => Reply::new(401, "{}"),
    })
    .await;
    let request = client(&server).license("CAD-2030-KEY").machine("m").patience(Duration::from_secs(60));
    let error = request.acquire().await.unwrap_err();
    assert!(matches!(error, Error::Denied(_)) && error.code() == "license-not-found", "{error:?}");
}
