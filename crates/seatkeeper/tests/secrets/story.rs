//! Correct and incorrect requests of clients and admins that carry secrets.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::{Answer, Client, run_with};
use crate::written::{PATIENCE, Written};
use crate::{BEARER, IDEMPOTENCY_KEY, LICENSE_KEY, WRONG_LICENSE_KEY};

const TENANT: &str = "11111111-1111-4111-8111-111111111111";

/// Makes a token with the command. The signature is the secret part.
fn token(settings: &[(String, String)], user: &str, scope: &str) -> String {
    let args = ["token", "--tenant", TENANT, "--user", user, "--scope", scope, "--ttl", "1h"];
    let output = run_with(settings, &args);
    assert!(output.status.success(), "{}", output.stderr);
    output.stdout.trim().to_owned()
}

fn signature(token: &str) -> String {
    token.rsplit('.').next().expect("a signature").to_owned()
}

/// Keeps the text of a problem, because clients may log problems anywhere.
fn keep(written: &mut Written, answer: &Answer) {
    if answer.status >= 400 {
        written.answer(&answer.body.to_string());
    }
    written.answer(&format!("{:?}", answer.headers));
}

/// Sends correct and incorrect requests about a license, a subscriber and a capacity. Returns the signatures
/// of the tokens.
pub(crate) async fn told(written: &mut Written, url: &str, settings: &[(String, String)]) -> Vec<String> {
    let (admins, anns) = (token(settings, "ops", "admin"), token(settings, "ann", "service"));
    let admin = Client::new(url, admins.clone());
    let ann = Client::new(url, anns.clone());
    let create = json!({ "license_key": LICENSE_KEY, "max_seats": 1, "clients": "key" });
    let post = |body: &Value| {
        let request = admin.http.post(format!("{url}/api/v1/admin/licenses")).bearer_auth(&admins);
        request.header("Idempotency-Key", IDEMPOTENCY_KEY).json(body).send()
    };
    for (body, status) in [(&create, 201), (&create, 201), (&json!({ "max_seats": 2 }), 422)] {
        let answer = Answer::read(post(body).await.unwrap()).await.unwrap();
        keep(written, &answer);
        assert_eq!(answer.status, status, "{}", answer.body);
    }
    let key = json!(LICENSE_KEY);
    let taken = ann.acquire(&key, "m1").await;
    keep(written, &taken);
    let session = taken.expect(201)["session_id"].clone();
    for answer in [
        ann.acquire(&key, "m2").await,
        ann.acquire(&json!(WRONG_LICENSE_KEY), "m1").await,
        ann.acquire(&json!(LICENSE_KEY.repeat(100)), "m1").await,
        ann.acquire(&json!([LICENSE_KEY]), "m1").await,
        ann.post("/api/v1/licenses/acquire", json!(LICENSE_KEY)).await,
        ann.post(&format!("/api/v1/{LICENSE_KEY}"), json!({})).await,
        admin.post("/api/v1/admin/licenses", json!({ "license_key": LICENSE_KEY, "max_seats": 1 })).await,
        admin.post("/api/v1/admin/licenses", json!({ "license_key": LICENSE_KEY, "max_seats": -1 })).await,
        ann.heartbeat(&session).await,
        ann.get("/metrics").await,
        admin.get("/api/v1/admin/audit").await,
        admin.get("/api/v1/admin/sessions").await,
        Client::new(url, BEARER.into()).acquire(&key, "m1").await,
        Client::new(url, format!("{anns}x")).acquire(&key, "m1").await,
        ann.post("/api/v1/devices/sessions", json!({ "device_id": "tv", "device_type": "tv" })).await,
        ann.put(
            "/api/v1/capacities/sessions",
            json!({
                "userObjectId": Uuid::new_v4(), "tenantObjectId": TENANT, "capacityId": Uuid::new_v4(), "sessionKind": 1,
            }),
        )
        .await,
        ann.release(&session).await,
        ann.heartbeat(&session).await,
    ] {
        keep(written, &answer);
    }
    let broken = format!("{{\"license_key\":\"{LICENSE_KEY}\",\"machine_id\":");
    let request = ann.http.request(Method::POST, format!("{url}/api/v1/licenses/acquire")).bearer_auth(&anns);
    let request = request.header("Content-Type", "application/json").body(broken);
    keep(written, &Answer::read(request.send().await.unwrap()).await.unwrap());
    let license_token = license_token_told(written, url, &ann).await;
    [admins, anns].iter().chain(&license_token).map(|token| signature(token)).collect()
}

/// A program with a license key guesses other keys. Returns the program's license token, if the server gives any.
async fn license_token_told(written: &mut Written, url: &str, client: &Client) -> Option<String> {
    let ask = async |license_key: &str, machine_id: &str| {
        let ask = json!({ "tenant": TENANT, "license_key": license_key, "machine_id": machine_id });
        client.post("/api/v1/licenses/token", ask).await
    };
    for answer in [ask(WRONG_LICENSE_KEY, "m1").await, ask(LICENSE_KEY, "").await] {
        keep(written, &answer);
    }
    let given = ask(LICENSE_KEY, "m1").await;
    keep(written, &given);
    let token = given.body["token"].as_str()?.to_owned();
    let machine = Client::new(url, token.clone());
    let taken = machine.acquire(&json!(LICENSE_KEY), "m1").await;
    for answer in [
        machine.heartbeat(&taken.body["session_id"]).await,
        machine.acquire(&json!(WRONG_LICENSE_KEY), "m1").await,
        machine.acquire(&json!(LICENSE_KEY), "m2").await,
        machine.get("/api/v1/admin/licenses").await,
        Client::new(url, format!("{token}x")).acquire(&json!(LICENSE_KEY), "m1").await,
    ] {
        keep(written, &answer);
    }
    Some(token)
}

/// Reads the sink's answer as an admin, and returns the signature of the admin's token.
pub(crate) async fn told_what_the_sink_said(
    written: &mut Written,
    url: &str,
    settings: &[(String, String)],
) -> String {
    let admins = token(settings, "ops", "admin");
    let admin = Client::new(url, admins.clone());
    let began = Instant::now();
    loop {
        let batches = admin.get("/api/v1/admin/usage/batches?state=dead").await.body.to_string();
        written.answer(&batches);
        // The sink's answer repeats its token, which the server masks.
        if batches.contains("Bearer ********") {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "no batch that the sink refused: {batches}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    signature(&admins)
}

/// Sends requests while Redis or the database is down. Returns the signatures of the tokens.
pub(crate) async fn told_that_it_fails(
    written: &mut Written,
    url: &str,
    settings: &[(String, String)],
) -> Vec<String> {
    let anns = token(settings, "ann", "");
    let ann = Client::new(url, anns.clone());
    let (key, wrong_key) = (json!(LICENSE_KEY), json!(WRONG_LICENSE_KEY));
    let device = json!({ "device_id": "tv", "device_type": "tv" });
    // Concurrent, because each request may last until the server's timeout.
    let answers = tokio::join!(
        ann.acquire(&key, "m1"),
        ann.acquire(&wrong_key, "m1"),
        ann.post("/api/v1/devices/sessions", device),
        ann.get("/readyz"),
        ann.get("/health/redis"),
        ann.get("/health/ledger"),
        ann.get("/metrics"),
    );
    for answer in <[Answer; 7]>::from(answers) {
        keep(written, &answer);
    }
    vec![signature(&anns)]
}
