//! Rate limits: equal for every spelling of a request, and shared by all nodes.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::json;
use uuid::Uuid;

use crate::TOPOLOGY;
use crate::harness::{Answer, Client};
use crate::http::exchange::assert_problem;
use crate::http::tenant_client::{
    ACQUIRE, CAPACITIES, DEVICES, TenantClient, capacity as capacity_of, session_path, sessions_path, text,
};

/// The default limits of the product.
const ACQUIRES: (&str, &str) = ("LIMITS_LICENSES_ACQUIRES_PER_MINUTE", "10");
const HEARTBEATS: (&str, &str) = ("LIMITS_LICENSES_HEARTBEATS_PER_MINUTE", "20");

/// Interval after which one more acquire, or one more heartbeat, is allowed.
const ACQUIRE_INTERVAL: Duration = Duration::from_secs(6);
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(3);

/// Returns the number of answers other than 429. Every such answer must have a status in `good`.
fn passed(answers: &[Answer], good: &[u16]) -> usize {
    let (passed, limited): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status != 429);
    passed.iter().for_each(|answer| assert!(good.contains(&answer.status), "{answer:?}"));
    limited.iter().for_each(|answer| assert_limited(answer));
    passed.len()
}

fn assert_limited(answer: &Answer) {
    assert_problem(answer, 429, "too-many-requests");
    let told = |name: &str| answer.headers[name].to_str().unwrap().parse::<u64>().unwrap();
    assert_eq!(told("ratelimit-remaining"), 0);
    let wait = told("retry-after");
    assert!(wait >= 1 && answer.body["retry_after_seconds"] == wait, "{answer:?}");
}

/// Asserts that the burst of a caller's acquires passed, plus at most one per elapsed interval. Each further node
/// may let one more pass: `docs/limits.md`.
fn assert_acquires(passed: usize, began: Instant) {
    let intervals = began.elapsed().as_millis() / ACQUIRE_INTERVAL.as_millis();
    let most = 10 + (TOPOLOGY.nodes() - 1) + usize::try_from(intervals).unwrap();
    assert!((10..=most).contains(&passed), "{passed} of 10 to {most}");
}

/// Asserts that the burst of a session's heartbeats passed. Redis counts neither the first heartbeat at each of
/// several nodes nor one more at each node per elapsed interval: `docs/limits.md`.
fn assert_heartbeats(passed: usize, began: Instant) {
    let more = if TOPOLOGY.nodes() == 1 { 0 } else { TOPOLOGY.nodes() };
    let intervals = began.elapsed().as_millis() / HEARTBEAT_INTERVAL.as_millis();
    let most = 20 + more + (1 + more) * usize::try_from(intervals).unwrap();
    assert!((20..=most).contains(&passed), "{passed} of 20 to {most}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_thousand_acquires_at_once_the_burst_passes() {
    let api = TenantClient::open_with(&[ACQUIRES]);
    let license = api.license(json!({ "max_seats": 1_000 })).await;
    let machines: Vec<_> = (0..1_000).map(|number| format!("machine-{number}")).collect();
    let ann = api.user("ann");
    let began = Instant::now();
    let answers =
        join_all(machines.iter().map(|machine| ann.acquire(&license["license_key"], machine))).await;
    assert_acquires(passed(&answers, &[201]), began);
    // Other users are not limited.
    api.seat(&license, "bob", "bobs").await;
    api.neighbour().user("ann").acquire(&license["license_key"], "abroad").await.expect(404);
}

#[tokio::test]
async fn an_answer_tells_how_the_caller_stands() {
    let api = TenantClient::open_with(&[ACQUIRES]);
    let license = api.license(json!({ "max_seats": 3 })).await;
    for (number, remaining) in (0..10).zip((0..10).rev()) {
        let answer = api.user("ann").acquire(&license["license_key"], "laptop-1").await;
        let told = |name: &str| answer.headers[name].to_str().unwrap().to_owned();
        assert_eq!(answer.status, if number == 0 { 201 } else { 200 });
        assert_eq!(told("ratelimit-limit"), "10");
        let told_remaining: u64 = told("ratelimit-remaining").parse().unwrap();
        assert!((remaining..=remaining + 1).contains(&told_remaining), "{number}: {told_remaining}");
        let reset: u64 = told("ratelimit-reset").parse().unwrap();
        assert!((1..=6 * (number + 1)).contains(&reset), "{number}: {reset}");
    }
    let limited = api.user("ann").acquire(&license["license_key"], "laptop-1").await;
    assert_limited(&limited);
    assert!(limited.body["retry_after_seconds"].as_u64().unwrap() <= 6);
    // Requests that take no seat are not counted.
    let list = api.user("ann").get(&sessions_path(&license)).await;
    assert!(list.status == 200 && !list.headers.contains_key("ratelimit-limit"), "{list:?}");
}

#[tokio::test]
async fn a_limit_is_of_its_user_whatever_the_token_and_the_body() {
    let api = TenantClient::open_with(&[ACQUIRES]);
    let license = api.license(json!({ "max_seats": 100 })).await;
    let (key, began) = (&license["license_key"], Instant::now());
    let mut answers = Vec::new();
    for number in 0..24 {
        // A new token for each request.
        let token = api.token("ann", if number % 2 == 0 { "" } else { "admin" });
        let ann = api.client(token);
        answers.push(match number % 4 {
            0 => ann.acquire(key, "laptop-1").await,
            1 => ann.acquire(&json!("no such license"), "laptop-1").await,
            2 => ann.post(ACQUIRE, json!({ "license_key": 7 })).await,
            _ => ann.post(&format!("{ACQUIRE}?again={number}"), json!([])).await,
        });
    }
    assert_acquires(passed(&answers, &[200, 201, 404, 422]), began);
}

#[tokio::test]
async fn heartbeats_are_counted_however_they_are_written() {
    let api = TenantClient::open_with(&[HEARTBEATS]);
    let license = api.license(json!({ "max_seats": 2 })).await;
    let session = api.seat(&license, "ann", "laptop-1").await;
    let id = text(&session);
    let spellings = [
        id.to_owned(),
        id.to_uppercase(),
        id.replace('-', ""),
        id.replace('-', "%2D"),
        format!("%{:02X}{}", id.as_bytes()[0], &id[1..]),
    ];
    let (ann, began) = (api.user("ann"), Instant::now());
    let mut answers = Vec::new();
    for number in 0..40 {
        let path = format!("/api/v1/licenses/sessions/{}/heartbeat", spellings[number % spellings.len()]);
        let method = if number % 2 == 0 { Method::PATCH } else { Method::PUT };
        answers.push(ann.send(method, &path, None).await);
    }
    assert_heartbeats(passed(&answers, &[200]), began);
    // A trailing slash, or capitals, lead to no route.
    for path in [format!("{}/heartbeat/", session_path(&session)), session_path(&session).to_uppercase()] {
        assert_problem(&ann.patch(&path, None).await, 404, "not-found");
    }
    // Limited heartbeats do no harm: the session lives, and the user's other sessions have limits of their
    // own.
    ann.get(&session_path(&session)).await.expect(200);
    let other = api.seat(&license, "ann", "laptop-2").await;
    ann.heartbeat(&other).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_uses_up_the_heartbeats_of_another_s_session() {
    let api = TenantClient::open_with(&[HEARTBEATS]);
    let license = api.license(json!({ "max_seats": 2 })).await;
    let session = api.seat(&license, "ann", "laptop-1").await;
    let (bob, stranger) = (api.user("bob"), api.neighbour());
    let eve = stranger.user("ann");
    let knock = |client: &Client| {
        let (client, session) = (client.clone(), session.clone());
        async move { join_all((0..60).map(|_| client.heartbeat(&session))).await }
    };
    let began = Instant::now();
    for answers in [knock(&bob).await, knock(&eve).await] {
        assert_heartbeats(passed(&answers, &[404]), began);
    }
    let began = Instant::now();
    let answers = knock(&api.user("ann")).await;
    assert_heartbeats(passed(&answers, &[200]), began);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_invented_sessions_at_once_a_burst_is_searched_for() {
    let api = TenantClient::open_with(&[ACQUIRES]);
    let (began, ann) = (Instant::now(), api.user("ann"));
    let invented = (0..200).map(|n| json!(format!("01981f3c-{n:04x}-8000-8000-000000000000")));
    let answers = join_all(invented.map(|session| {
        let ann = ann.clone();
        async move { ann.heartbeat(&session).await }
    }))
    .await;
    let searched = answers.iter().filter(|answer| answer.status == 404).count();
    for answer in answers.iter().filter(|answer| answer.status != 404) {
        assert_problem(answer, 429, "too-many-requests");
    }
    let intervals = began.elapsed().as_millis() / ACQUIRE_INTERVAL.as_millis();
    let most = 10 * TOPOLOGY.nodes() + TOPOLOGY.nodes() * usize::try_from(intervals).unwrap();
    assert!((10..=most).contains(&searched), "{searched} of 10 to {most}");
}

#[tokio::test]
async fn each_api_and_a_service_have_limits_of_their_own() {
    let api = TenantClient::open_with(&[
        ("LIMITS_LICENSES_ACQUIRES_PER_MINUTE", "1"),
        ("LIMITS_DEVICES_ACQUIRES_PER_MINUTE", "2"),
        ("LIMITS_DEVICES_HEARTBEATS_PER_MINUTE", "1"),
        ("LIMITS_CAPACITIES_ACQUIRES_PER_MINUTE", "3"),
        ("LIMITS_SERVICE_ACQUIRES_PER_MINUTE", "5"),
    ]);
    let license = api.license(json!({ "max_seats": 5 })).await;
    let seat = async |client: &Client| client.acquire(&license["license_key"], "laptop-1").await;
    let screen =
        async |client: &Client| client.post(DEVICES, json!({ "device_id": "tv", "device_type": "tv" })).await;
    let capacity = async |client: &Client| {
        client.put(CAPACITIES, capacity_of(&api.tenant, Uuid::from_u128(1), Uuid::from_u128(2), 1)).await
    };
    // A user may take capacities only for itself.
    let ann = api.user(&Uuid::from_u128(1).to_string());
    let service = api.service("meter");
    for (client, limits) in [(&ann, [1, 2, 3]), (&service, [5, 5, 5])] {
        for number in 0..6 {
            let answers = [seat(client).await, screen(client).await, capacity(client).await];
            for (answer, limit) in answers.iter().zip(limits) {
                if number < limit {
                    assert!([200, 201].contains(&answer.status), "{answer:?}");
                    assert_eq!(answer.headers["ratelimit-limit"], limit.to_string());
                } else {
                    assert_limited(answer);
                }
            }
        }
    }
    let session = ann.get(DEVICES).await.expect(200)["items"][0]["session_id"].clone();
    let beat = async || ann.post(&format!("{DEVICES}/heartbeat"), json!({ "session_id": session })).await;
    // At a limit of one a minute, every node lets the first heartbeat of a session pass.
    for _ in 0..TOPOLOGY.nodes() {
        beat().await.expect(204);
    }
    assert_limited(&beat().await);
}
