//! The life of a license token.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::{Issuer, LicenseTokens, Refused, Slot, Token};
use crate::clock;
use crate::license_key::LicenseKey;
use crate::servers::Servers;
use crate::wire::Wire;

use crate::scripted::{Reply, Scripted};

const LIFE: u64 = 1_000;
const TARGET: &str = "POST /api/v1/licenses/token";

async fn server(delay: Duration) -> Scripted {
    Scripted::start(move |_, earlier| {
        let body = json!({ "token": format!("t{}", earlier + 1), "expires_in_seconds": LIFE });
        Reply(200, "", body.to_string(), delay)
    })
    .await
}

fn tokens(url: &str, timeout: Duration) -> Arc<LicenseTokens> {
    let servers = Servers::new(&[url.to_owned()]).unwrap();
    let wire = Arc::new(Wire { http: reqwest::Client::new(), servers });
    let issuer = Arc::new(Issuer { wire, key: LicenseKey::new("K"), timeout });
    Arc::new(LicenseTokens { issuer, machines: std::sync::Mutex::default() })
}

/// Moves the times of the token, as if the token had been issued `age` ago.
fn age(slot: &Slot, age: Duration) {
    let mut content = slot.content();
    let token = content.token.as_mut().unwrap();
    let issued = clock::boot().saturating_sub(age);
    let life = Duration::from_secs(LIFE);
    *token = Token { text: token.text.clone(), renew_at: issued + life * 4 / 5, over_at: issued + life };
}

#[tokio::test]
async fn a_token_is_good_for_its_life_and_due_at_four_fifths_of_it() {
    let server = server(Duration::ZERO).await;
    let tokens = tokens(&server.url, Duration::from_secs(60));
    let before = clock::boot();
    assert_eq!(tokens.current("m").await.unwrap(), "t1");
    let token = tokens.slot("m").content().token.clone().unwrap();
    let issued = before..=clock::boot();
    assert!(issued.contains(&(token.renew_at - Duration::from_secs(LIFE * 4 / 5))), "{:?}", token.renew_at);
    assert!(issued.contains(&(token.over_at - Duration::from_secs(LIFE))), "{:?}", token.over_at);
}

#[tokio::test]
async fn a_token_in_its_last_fifth_is_replaced_in_the_background() {
    let server = server(Duration::from_millis(100)).await;
    let tokens = tokens(&server.url, Duration::from_secs(60));
    assert_eq!(tokens.current("m").await.unwrap(), "t1");
    let slot = tokens.slot("m");
    age(&slot, Duration::from_secs(LIFE * 4 / 5 - 100));
    assert_eq!(tokens.current("m").await.unwrap(), "t1");
    assert_eq!(server.arrived(TARGET).len(), 1, "before four fifths of the life");
    age(&slot, Duration::from_secs(LIFE * 4 / 5));
    for _ in 0..20 {
        assert_eq!(tokens.current("m").await.unwrap(), "t1", "no request waits for the new token");
    }
    drop(slot.fetching.lock().await);
    while tokens.current("m").await.unwrap() == "t1" {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(server.arrived(TARGET).len(), 2, "one request replaces the token");
}

#[tokio::test]
async fn a_replacement_that_fails_keeps_the_token_and_pauses() {
    let tokens = tokens("http://127.0.0.1:1", Duration::from_secs(60));
    let slot = tokens.slot("m");
    let token = Token { text: "old".to_owned(), renew_at: Duration::ZERO, over_at: Duration::MAX };
    slot.content().token = Some(token);
    assert_eq!(tokens.current("m").await.unwrap(), "old");
    while slot.content().pause_until == Duration::ZERO {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(slot.content().pause_until > clock::boot() + Duration::from_secs(5));
    assert_eq!(tokens.current("m").await.unwrap(), "old");
}

#[tokio::test]
async fn a_token_past_its_life_is_fetched_by_one_request_for_all() {
    let server = server(Duration::from_millis(100)).await;
    let tokens = tokens(&server.url, Duration::from_secs(60));
    assert_eq!(tokens.current("m").await.unwrap(), "t1");
    age(&tokens.slot("m"), Duration::from_secs(LIFE));
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let tokens = tokens.clone();
            tokio::spawn(async move { tokens.current("m").await.unwrap() })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap(), "t2");
    }
    assert_eq!(server.arrived(TARGET).len(), 2);
}

#[tokio::test]
async fn a_server_that_hangs_is_given_up() {
    let server = server(Duration::from_secs(3_600)).await;
    let tokens = tokens(&server.url, Duration::from_millis(50));
    assert!(matches!(tokens.current("m").await, Err(Refused::Failure(_))));
    assert!(!tokens.refresh("m").await);
}

#[tokio::test]
async fn tokens_of_many_machines_are_bounded() {
    let tokens = tokens("http://127.0.0.1:1", Duration::from_secs(60));
    for number in 0..1_000 {
        drop(tokens.slot(&format!("m{number}")));
    }
    assert!(tokens.machines.lock().unwrap().len() <= super::MACHINES_KEPT);
}
