//! The fields that a client tells the server beside its seat.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

mod scripted;

use std::time::{Duration, Instant};

use seatkeeper_client::{Client, ClientBuilder, Finish, TokenError};
use serde_json::{Value, json};

use scripted::{Arrived, Reply, Scripted};

const SESSION: &str = "0198a0aa-0000-7000-8000-000000000001";
const ACQUIRE: &str = "POST /api/v1/licenses/acquire";
const CODE: &str = "canary-code-77aa01";

fn grant() -> Reply {
    let grant = json!({
        "session_id": SESSION, "expires_in_seconds": 360, "heartbeat_interval_seconds": 1, "release_code": CODE,
    });
    Reply::new(201, grant.to_string())
}

fn willing(request: &Arrived, _: usize) -> Reply {
    match &request.target {
        target if target == ACQUIRE => grant(),
        target if target.starts_with("PATCH ") => Reply::renewed(360),
        _ => Reply::new(204, ""),
    }
}

fn builder(server: &Scripted) -> ClientBuilder {
    Client::builder(&server.url).token("t").event_streams(false)
}

async fn body_of_acquire(server: &Scripted, client: &Client) -> Value {
    client.license("K").machine("m").acquire().await.unwrap().release().await.unwrap();
    server.arrived(ACQUIRE).pop().unwrap().body
}

#[tokio::test]
async fn a_program_with_a_name_is_told_with_this_crate() {
    let server = Scripted::start(willing).await;
    let sdk = concat!("rust/", env!("CARGO_PKG_VERSION"));
    let named = builder(&server).application("cad", "9.1").build().unwrap();
    let wanted = json!({
        "license_key": "K", "machine_id": "m", "client": { "name": "cad", "version": "9.1", "sdk": sdk },
    });
    assert_eq!(body_of_acquire(&server, &named).await, wanted);
    let unversioned = builder(&server).application("cad", "").build().unwrap();
    assert_eq!(body_of_acquire(&server, &unversioned).await["client"], json!({ "name": "cad", "sdk": sdk }));
    let unnamed = builder(&server).build().unwrap();
    assert_eq!(body_of_acquire(&server, &unnamed).await, json!({ "license_key": "K", "machine_id": "m" }));
}

#[tokio::test]
async fn an_activity_is_told_by_the_heartbeats_after_it() {
    let server = Scripted::start(willing).await;
    let seat = builder(&server).build().unwrap().license("K").machine("m").acquire().await.unwrap();
    let beats = || server.arrived("PATCH");
    while beats().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(beats()[0].body, Value::Null);
    let active_at = Instant::now();
    seat.activity();
    let told = beats().len();
    while beats().len() < told + 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // A heartbeat in flight during the call tells nothing.
    assert_eq!(beats()[told + 1].body.as_object().unwrap().len(), 1);
    let idle_seconds = beats()[told + 1].body["idle_seconds"].as_u64().unwrap();
    assert!(idle_seconds <= active_at.elapsed().as_secs(), "{idle_seconds}");
    assert_eq!(seat.release().await.unwrap(), Finish::GivenBack);
}

#[tokio::test]
async fn a_release_without_a_fresh_token_uses_the_code_without_a_token() {
    let server = Scripted::start(|request, _| match &request.target {
        target if target == ACQUIRE => grant(),
        target if target.starts_with("DELETE ") => Reply::new(401, "{}"),
        _ => Reply::new(204, ""),
    })
    .await;
    let calls = std::sync::atomic::AtomicUsize::new(0);
    let source = move || {
        let call = calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        async move {
            if call == 0 { Ok("t".to_owned()) } else { Err(TokenError::Source("signed out".to_owned())) }
        }
    };
    let builder = Client::builder(&server.url).token_source(source).event_streams(false);
    let client = builder.build().unwrap();
    let seat = client.license("K").machine("m").acquire().await.unwrap();
    let shown = format!("{seat:?} {:?} {client:?}", seat.state());
    assert!(!shown.contains(CODE), "{shown}");
    assert_eq!(seat.release().await.unwrap(), Finish::Unconfirmed);
    let by_code = server.arrived("POST /api/v1/licenses/sessions/release");
    assert_eq!(by_code.len(), 1);
    assert_eq!(
        (&by_code[0].token, &by_code[0].body),
        (&None, &json!({ "session_id": SESSION, "release_code": CODE }))
    );
    assert_eq!(server.arrived("DELETE").len(), 1);
}
