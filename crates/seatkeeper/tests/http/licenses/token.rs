//! `POST /api/v1/licenses/token`: whoever knows the key of a license gets a token that is good for its seats on one machine.

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Answer, Client, LICENSE_TOKEN_KEY_FILE, Topology};
use crate::http::exchange::{assert_field, assert_problem, comparable, exchange};
use crate::http::tenant_client::{
    AUDIT, CAPACITIES, DEVICES, LICENSE_TOKEN, LICENSES, TenantClient, license_path, session_path,
    sessions_path, text,
};
use crate::http::until::until;

const PER_ADDRESS: &str = "LIMITS_LICENSE_TOKENS_PER_ADDRESS_PER_MINUTE";
const PER_KEY: &str = "LIMITS_LICENSE_TOKENS_PER_KEY_PER_MINUTE";

/// Asks for a token without any other token.
async fn ask(api: &TenantClient, body: Value) -> Answer {
    exchange(api.request(Method::POST, LICENSE_TOKEN).json(&body)).await
}

async fn ask_for(api: &TenantClient, license_key: &Value, machine: &str) -> Answer {
    ask(api, json!({ "tenant": api.tenant, "license_key": license_key, "machine_id": machine })).await
}

/// A client with a license token.
async fn client(api: &TenantClient, license: &Value, machine: &str) -> Client {
    let answer = ask_for(api, &license["license_key"], machine).await.expect(200);
    api.client(text(&answer["token"]).to_owned())
}

#[track_caller]
fn assert_not_found(answer: &Answer, what: &str) {
    assert_problem(answer, 404, what);
    assert_eq!(answer.body["type"], "/problems/license-not-found", "{what}");
}

#[tokio::test]
async fn a_key_gets_a_token_that_takes_keeps_shows_and_gives_back_a_seat() {
    let api = TenantClient::open();
    let license = api.license(json!({ "clients": "key", "max_seats": 1 })).await;
    let answer = ask_for(&api, &license["license_key"], "laptop-1").await;
    assert_eq!(answer.headers["cache-control"], "no-store");
    let answer = answer.expect(200);
    assert_eq!((&answer["token_type"], &answer["expires_in_seconds"]), (&json!("Bearer"), &json!(900)));

    let laptop = api.client(text(&answer["token"]).to_owned());
    let taken = laptop.acquire(&license["license_key"], "laptop-1").await.expect(201);
    let session = &taken["session_id"];
    laptop.heartbeat(session).await.expect(200);
    laptop.put(&format!("{}/heartbeat", session_path(session)), json!({})).await.expect(200);
    assert_eq!(laptop.get(&session_path(session)).await.expect(200)["session_id"], *session);
    // A new token of the same machine goes on with the session.
    let again = client(&api, &license, "laptop-1").await;
    again.heartbeat(session).await.expect(200);
    let resumed = again.acquire(&license["license_key"], "laptop-1").await.expect(200);
    assert_eq!(resumed["session_id"], *session);
    let other = client(&api, &license, "laptop-2").await;
    other.acquire(&license["license_key"], "laptop-2").await.expect(403);
    again.release(session).await.expect(204);
    other.acquire(&license["license_key"], "laptop-2").await.expect(201);
}

#[tokio::test]
async fn the_record_names_the_machine_by_a_hash_and_never_tells_the_key() {
    let api = TenantClient::open();
    let license =
        api.license(json!({ "clients": "key", "license_key": "CANARY-CANARY-CANARY", "max_seats": 1 })).await;
    let laptop = client(&api, &license, "laptop-1").await;
    laptop.acquire(&license["license_key"], "laptop-1").await.expect(201);
    let audit = api.admin().get(AUDIT).await.expect(200).to_string();
    assert!(audit.contains("user:machine:") && !audit.contains("CANARY-CANARY"), "{audit}");
}

#[tokio::test]
async fn a_license_token_learns_nothing_of_other_holders() {
    let api = TenantClient::open();
    let license = api.license(json!({ "clients": "key", "max_seats": 1 })).await;
    let key = &license["license_key"];
    let anns = api.user("ann").acquire(key, "workstation-7").await.expect(201)["session_id"].clone();

    let denied = client(&api, &license, "laptop-1").await.acquire(key, "laptop-1").await.expect(403);
    assert_eq!(denied.get("holders"), None, "{denied}");
    let shown = api.user("bob").acquire(key, "laptop-1").await.expect(403);
    assert_eq!(shown["holders"][0]["machine_id"], "workstation-7");

    // A program that knows the name of the machine shares the seat, and still reads nothing of the user.
    let same_machine = client(&api, &license, "workstation-7").await;
    assert_eq!(same_machine.acquire(key, "workstation-7").await.expect(200)["session_id"], anns);
    same_machine.get(&session_path(&anns)).await.expect(404);
    api.user("ann").get(&session_path(&anns)).await.expect(200);
}

#[tokio::test]
async fn a_key_that_is_not_good_for_a_token_looks_like_a_key_of_nothing() {
    let (api, stranger) = (TenantClient::open(), TenantClient::open());
    let license = async |change: Value| {
        let license = api.license(json!({ "clients": "key", "max_seats": 1 })).await;
        api.change(&license, change).await["license_key"].clone()
    };
    let revoked = api.license(json!({ "clients": "key", "max_seats": 1 })).await;
    api.admin().delete(&license_path(&revoked)).await.expect(204);
    let keys = [
        (
            "a license of another tenant",
            stranger.license(json!({ "clients": "key", "max_seats": 1 })).await["license_key"].clone(),
        ),
        ("a suspended license", license(json!({ "status": "suspended" })).await),
        ("a revoked license", revoked["license_key"].clone()),
        ("an expired license", license(json!({ "expires_at": "2020-01-01T00:00:00Z" })).await),
        ("a license for clients with tokens of the issuer", license(json!({ "clients": "token" })).await),
        ("a key in another case", json!(text(&license(json!({})).await).to_lowercase())),
        ("a key with a space", json!(format!("{} ", text(&license(json!({})).await)))),
    ];
    let nothing = ask_for(&api, &json!("no such key"), "laptop-1").await;
    assert_not_found(&nothing, "no such key");
    for (what, key) in keys {
        // Before and after the server remembers it.
        for _ in 0..2 {
            let answer = ask_for(&api, &key, "laptop-1").await;
            assert_eq!(comparable(&answer), comparable(&nothing), "{what}");
        }
    }
    // Without a tenant, the usual tenant is meant.
    let good = api.license(json!({ "clients": "key", "max_seats": 1 })).await["license_key"].clone();
    let answer = ask(&api, json!({ "license_key": good, "machine_id": "laptop-1" })).await;
    assert_eq!(comparable(&answer), comparable(&nothing));
}

#[tokio::test]
async fn a_tenant_that_is_absent_is_the_default_one() {
    let api = TenantClient::open();
    let admin = api.client(api.harness.token_of("default", "ops", "admin"));
    let license = admin.post(LICENSES, json!({ "max_seats": 1, "clients": "key" })).await.expect(201);
    ask(&api, json!({ "license_key": license["license_key"], "machine_id": "laptop-1" })).await.expect(200);
}

#[tokio::test]
async fn a_token_is_good_for_one_license_on_one_machine() {
    let api = TenantClient::open();
    let [one, other] = [
        api.license(json!({ "clients": "key", "max_seats": 9 })).await,
        api.license(json!({ "clients": "key", "max_seats": 9 })).await,
    ];
    let laptop = client(&api, &one, "laptop-1").await;
    let elsewhere = laptop.acquire(&other["license_key"], "laptop-1").await;
    assert_not_found(&elsewhere, "another license");
    let nothing = laptop.acquire(&json!("no such key"), "laptop-1").await;
    assert_eq!(comparable(&elsewhere), comparable(&nothing));
    assert_field(&laptop.acquire(&one["license_key"], "laptop-2").await, "machine_id", "another machine");

    // Sessions of the same machine in another license, of another machine, and of a user.
    let neighbour = client(&api, &other, "laptop-1").await;
    let of_other =
        neighbour.acquire(&other["license_key"], "laptop-1").await.expect(201)["session_id"].clone();
    let second = client(&api, &one, "laptop-2").await;
    let of_second = second.acquire(&one["license_key"], "laptop-2").await.expect(201)["session_id"].clone();
    let of_ann = api.seat(&one, "ann", "laptop-3").await;
    for session in [&of_other, &of_second, &of_ann] {
        laptop.heartbeat(session).await.expect(404);
        laptop.get(&session_path(session)).await.expect(404);
        laptop.release(session).await.expect(404);
    }
    neighbour.heartbeat(&of_other).await.expect(200);
    second.heartbeat(&of_second).await.expect(200);
    api.user("ann").heartbeat(&of_ann).await.expect(200);
}

#[tokio::test]
async fn a_token_opens_nothing_but_seats() {
    let api = TenantClient::open();
    let license = api.license(json!({ "clients": "key", "max_seats": 1 })).await;
    let laptop = client(&api, &license, "laptop-1").await;
    for (method, path, body) in [
        (Method::GET, LICENSES.to_owned(), json!({})),
        (Method::POST, LICENSES.to_owned(), json!({ "max_seats": 1 })),
        (Method::PATCH, license_path(&license), json!({ "max_seats": 99 })),
        (Method::GET, sessions_path(&license), json!({})),
        (Method::POST, DEVICES.to_owned(), json!({ "device_id": "tv", "device_type": "tv" })),
        (Method::PUT, CAPACITIES.to_owned(), json!({})),
        (Method::GET, AUDIT.to_owned(), json!({})),
    ] {
        let answer = laptop.send(method.clone(), &path, Some(body)).await;
        assert_problem(&answer, 401, &format!("{method} {path}"));
    }
    assert_eq!(api.license_now(&license).await, license);
}

#[tokio::test]
async fn a_suspended_license_takes_its_tokens_with_it_until_it_is_resumed() {
    let api = TenantClient::open();
    let license = api.license(json!({ "clients": "key", "max_seats": 1 })).await;
    let laptop = client(&api, &license, "laptop-1").await;
    let session = laptop.acquire(&license["license_key"], "laptop-1").await.expect(201)["session_id"].clone();
    api.change(&license, json!({ "status": "suspended" })).await;
    until("the session is over", async || match laptop.heartbeat(&session).await {
        answer if answer.status == 410 => Ok(()),
        answer => Err(answer.body.to_string()),
    })
    .await;
    until("no token", async || match ask_for(&api, &license["license_key"], "laptop-1").await {
        answer if answer.status == 404 => Ok(()),
        answer => Err(answer.body.to_string()),
    })
    .await;
    laptop.acquire(&license["license_key"], "laptop-1").await.expect(404);
    api.change(&license, json!({ "status": "active" })).await;
    // A refusal always reads the ledger, so no node answers by a license that it remembers as suspended.
    ask_for(&api, &license["license_key"], "laptop-1").await.expect(200);
    laptop.acquire(&license["license_key"], "laptop-1").await.expect(201);
}

#[tokio::test]
async fn a_license_that_is_closed_to_keys_admits_no_token_that_was_given_before() {
    let api = TenantClient::open();
    let license = api.license(json!({ "clients": "key", "max_seats": 2 })).await;
    let (laptop, other) =
        (client(&api, &license, "laptop-1").await, client(&api, &license, "laptop-2").await);
    let session = laptop.acquire(&license["license_key"], "laptop-1").await.expect(201)["session_id"].clone();
    api.change(&license, json!({ "clients": "token" })).await;
    until("no seat for a license token", async || {
        match other.acquire(&license["license_key"], "laptop-2").await {
            answer if answer.status == 404 => Ok(()),
            answer => Err(answer.body.to_string()),
        }
    })
    .await;
    assert_not_found(&ask_for(&api, &license["license_key"], "laptop-2").await, "closed");
    // The session of before lives on, and the issuer's clients are admitted.
    laptop.heartbeat(&session).await.expect(200);
    laptop.release(&session).await.expect(204);
    api.seat(&license, "ann", "laptop-3").await;
}

#[tokio::test]
async fn names_in_any_script_are_taken_and_over_long_ones_are_named() {
    let api = TenantClient::open();
    let key = "\u{9375}\u{1f511}".repeat(10);
    let license = api.license(json!({ "clients": "key", "license_key": key, "max_seats": 1 })).await;
    let machine = "\u{6a5f}\u{301}".repeat(102);
    let laptop = client(&api, &license, &machine).await;
    laptop.acquire(&license["license_key"], &machine).await.expect(201);
    for (field, value) in [
        ("machine_id", json!("x".repeat(256))),
        ("machine_id", json!("\u{6a5f}\u{301}".repeat(103))),
        ("machine_id", json!("")),
        ("machine_id", json!("a\u{0}b")),
        ("license_key", json!("\u{1f511}".repeat(256))),
        ("license_key", json!(null)),
        ("tenant", json!("t".repeat(256))),
        ("tenant", json!("")),
    ] {
        let mut body = json!({ "tenant": api.tenant, "license_key": key, "machine_id": machine });
        body[field] = value.clone();
        assert_field(&ask(&api, body).await, field, &value.to_string());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_burst_of_guesses_as_many_pass_as_the_address_may_ask() {
    let api = TenantClient::open_with(&[(PER_ADDRESS, "30")]);
    let license = api.license(json!({ "clients": "key", "max_seats": 1 })).await;
    let guesses: Vec<_> = (0..90).map(|number| json!(format!("guess-{number}"))).collect();
    let answers = join_all(guesses.iter().map(|guess| ask_for(&api, guess, "laptop-1"))).await;
    let passed = answers.iter().filter(|answer| answer.status == 404).count();
    // One comes back every 2 s.
    assert!((30..=40).contains(&passed), "{passed}");
    for answer in answers.iter().filter(|answer| answer.status != 404) {
        assert_problem(answer, 429, "a guess");
        let wait: u64 = answer.headers["retry-after"].to_str().unwrap().parse().unwrap();
        assert!(wait >= 1 && answer.body["retry_after_seconds"] == wait, "{answer:?}");
        assert_eq!(answer.headers["ratelimit-limit"], "30");
    }
    assert_problem(&ask_for(&api, &license["license_key"], "laptop-1").await, 429, "the right key");
    assert_problem(&ask(&api, json!({})).await, 429, "no key at all");
    // Nothing else is held up.
    api.seat(&license, "ann", "laptop-2").await;
}

#[tokio::test]
async fn an_address_is_the_clients_own_and_an_ipv6_network_counts_as_one() {
    let api = TenantClient::open_with(&[(PER_ADDRESS, "1"), ("SERVER_TRUSTED_PROXIES", "127.0.0.1")]);
    let license = api.license(json!({ "clients": "key", "max_seats": 1 })).await;
    let from = async |address: &str| {
        let body = json!({ "tenant": api.tenant, "license_key": license["license_key"], "machine_id": "m" });
        let request = api.request(Method::POST, LICENSE_TOKEN).header("X-Forwarded-For", address);
        exchange(request.json(&body)).await.status
    };
    for (address, status) in [
        ("192.0.2.1", 200),
        ("192.0.2.1", 429),
        ("192.0.2.2", 200),
        ("2001:db8:0:1::1", 200),
        ("2001:db8:0:1:ffff::2", 429),
        ("2001:db8:0:2::1", 200),
    ] {
        assert_eq!(from(address).await, status, "{address}");
    }
}

#[tokio::test]
async fn a_key_is_shown_so_many_times_a_minute_whether_it_is_good_or_not() {
    let api = TenantClient::open_with(&[(PER_KEY, "3")]);
    let [one, other] = [
        api.license(json!({ "clients": "key", "max_seats": 1 })).await,
        api.license(json!({ "clients": "key", "max_seats": 1 })).await,
    ];
    for (key, status) in [(one["license_key"].clone(), 200), (json!("no such key"), 404)] {
        for remaining in ["2", "1", "0"] {
            let answer = ask_for(&api, &key, "laptop-1").await;
            assert_eq!(answer.headers["ratelimit-remaining"], remaining, "{key}");
            answer.expect(status);
        }
        assert_problem(&ask_for(&api, &key, "laptop-2").await, 429, "once more");
    }
    ask_for(&api, &other["license_key"], "laptop-1").await.expect(200);
}

#[tokio::test]
async fn nodes_without_a_key_that_they_share_give_no_tokens() {
    if crate::TOPOLOGY == Topology::Embedded {
        return;
    }
    let api = TenantClient::open_with(&[(LICENSE_TOKEN_KEY_FILE, "")]);
    let license = api.license(json!({ "clients": "key", "max_seats": 1 })).await;
    let answer = ask_for(&api, &license["license_key"], "laptop-1").await;
    assert_problem(&answer, 404, "no key");
    assert_eq!(answer.body["type"], "/problems/not-found");
}
