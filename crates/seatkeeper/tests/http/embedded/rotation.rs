//! Rotation of secrets in files, under load: no request with a valid secret fails.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tokio::sync::RwLock;
use uuid::Uuid;

use crate::harness::sink::{Do, Sink, header};
use crate::harness::{EventStream, Harness};
use crate::http::until::until;

/// Concurrent clients.
const CLIENTS: usize = 4;

/// Longer than a server takes to notice and log an invalid file.
const SEEN: Duration = Duration::from_secs(7);

/// The log text about an invalid file.
const TOLD: &str = "reload failed: the file is invalid or cannot be read";

#[tokio::test(flavor = "multi_thread")]
async fn secrets_of_tokens_are_rotated_under_load() {
    let [old, new] = ["0123456789abcdef-the-old-secret-", "0123456789abcdef-the-new-secret-"];
    keys_are_rotated("AUTH_SECRET_FILE", "HS256", [old, new], "too short").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_tokens_are_rotated_under_load() {
    let [old, new] = [(); 2].map(|()| ed25519_key());
    keys_are_rotated("AUTH_KEY_FILE", "EdDSA", [&old, &new], "no key").await;
}

/// Rotates from the old key over both keys to the new key, and then writes `bad`, which is no key.
async fn keys_are_rotated(setting: &str, algorithm: &str, [old, new]: [&str; 2], bad: &str) {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("keys");
    replace(&file, old);
    let settings = [(setting, file.to_str().expect("a plain path")), ("AUTH_ALGORITHM", algorithm)];
    let mut harness = Harness::open_with(&settings);
    let (license, by_old) = (harness.license(1).await, harness.client("ann"));
    let seat = by_old.acquire(&license["license_key"], "m").await.expect(201)["session_id"].clone();

    // Clients hold the read lock during a request.
    let client = RwLock::new(by_old.clone());
    let (is_over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let beat = async || {
        while !is_over.load(Relaxed) {
            client.read().await.heartbeat(&seat).await.expect(200);
            answered.fetch_add(1, Relaxed);
        }
    };
    let story = async {
        replace(&file, &format!("{new}\n{old}"));
        // The token is signed by the file's first key.
        let by_new = harness.client("ann");
        until("the new key counts", async || match by_new.heartbeat(&seat).await.status {
            200 => Ok(()),
            status => Err(status.to_string()),
        })
        .await;
        by_old.heartbeat(&seat).await.expect(200);
        *client.write().await = by_new;
        replace(&file, new);
        until("the old key counts no more", async || match by_old.heartbeat(&seat).await.status {
            401 => Ok(()),
            status => Err(status.to_string()),
        })
        .await;
        replace(&file, bad);
        tokio::time::sleep(SEEN).await;
        is_over.store(true, Relaxed);
    };
    tokio::join!(story, join_all((0..CLIENTS).map(|_| beat())));
    assert!(answered.load(Relaxed) > CLIENTS);
    let (status, log) = harness.stop();
    assert!(status.success() && log.contains(TOLD), "{log}");
    replace(&file, new);
    harness.prove();
}

/// Rotates from the old key over both keys to the new key, and watches the streams of a token of each key.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_the_key_of_its_token_and_goes_on_with_a_kept_key() {
    let [old, new] = [(); 2].map(|()| ed25519_key());
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("keys");
    replace(&file, &old);
    let settings = [("AUTH_KEY_FILE", file.to_str().expect("a plain path"))];
    let harness = Harness::open_with(&settings);
    let (license, by_old) = (harness.license(1).await, harness.client("ann"));
    let seat = by_old.acquire(&license["license_key"], "m").await.expect(201)["session_id"].clone();
    let path = format!("/api/v1/licenses/sessions/{}/events", seat.as_str().expect("an id"));
    let mut of_old = EventStream::open(&by_old, &path, None).await.expect("a stream");

    replace(&file, &format!("{new}\n{old}"));
    // The token is signed by the file's first key.
    let by_new = harness.client("ann");
    until("the new key counts", async || match by_new.heartbeat(&seat).await.status {
        200 => Ok(()),
        status => Err(status.to_string()),
    })
    .await;
    let mut of_new = EventStream::open(&by_new, &path, None).await.expect("a stream");
    // A comment comes after the change of the keys: the stream of a key that is kept goes on.
    assert_eq!(of_old.comment().await, "still here");

    replace(&file, &new);
    assert_eq!(of_old.next().await, None, "the key of its token is withdrawn");
    assert_eq!(EventStream::open(&by_old, &path, None).await.expect_err("no stream").status, 401);
    by_new.release(&seat).await.expect(204);
    assert_eq!(of_new.next().await.expect("an event").name, "released");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_of_the_sink_is_rotated_and_every_batch_bears_one_that_counts() {
    const TENANT: &str = "80004000-8000-0000-0000-000000000003";
    let sink = Sink::open(|_| Do::Take(200)).await;
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("token");
    replace(&file, "token-0\n");
    let mut harness = Harness::open_with(&[
        ("USAGE_SINK_URL", &sink.url),
        ("USAGE_SINK_TOKEN_FILE", file.to_str().expect("a plain path")),
        ("USAGE_EMISSION_INTERVAL_SECONDS", "1"),
    ]);
    let meter = harness.client_with(harness.token_of(TENANT, "meter", "service"));
    let ask = json!({
        "userObjectId": Uuid::new_v4(), "tenantObjectId": TENANT, "capacityId": Uuid::new_v4(), "sessionKind": 1,
    });
    meter.put("/api/v1/capacities/sessions", ask).await.expect(201);
    let shown = || sink.taken().iter().map(|batch| header(&batch.head, "authorization")).collect::<Vec<_>>();
    let comes = async |token: &str| {
        let bearer = format!("Bearer {token}");
        until(token, async || if shown().contains(&bearer) { Ok(()) } else { Err(format!("{:?}", shown())) })
            .await;
    };
    comes("token-0").await;
    replace(&file, "token-1");
    comes("token-1").await;
    replace(&file, "no token at all");
    tokio::time::sleep(SEEN).await;
    replace(&file, "token-2");
    comes("token-2").await;
    let mut shown = shown();
    shown.dedup();
    assert_eq!(shown, ["Bearer token-0", "Bearer token-1", "Bearer token-2"]);
    let (status, log) = harness.stop();
    assert!(status.success() && log.contains(TOLD), "{log}");
}

/// Replaces a file atomically, as tools that rotate secrets do.
fn replace(file: &Path, text: &str) {
    let aside = file.with_extension("new");
    fs::write(&aside, text).and_then(|()| fs::rename(&aside, file)).expect("it is written");
}

fn ed25519_key() -> String {
    let mut openssl = Command::new("openssl");
    let made = openssl.args(["genpkey", "-algorithm", "ed25519"]).stdin(Stdio::null()).output();
    let made = made.expect("openssl is missing: install it (Debian: apt-get install openssl)");
    String::from_utf8(made.stdout).expect("PEM")
}
