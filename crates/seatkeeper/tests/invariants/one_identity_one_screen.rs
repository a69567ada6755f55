//! A copied device identity does not allow a second screen: the two clients keep superseding each other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::support::books::Books;
use super::support::scene::{patient, text};
use super::support::subscriber::Subscriber;
use crate::harness::{Client, Harness};

/// Heartbeat interval of both clients.
const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(20);

/// Number of screens that a client must lose.
const TURNS: usize = 60;

/// Far more heartbeats than a client has in a turn, even if a busy machine delays the other client.
const HEARTBEATS_MAX: usize = 1_000;

/// A screen as its client saw it.
struct Screen {
    session: String,
    asked_at: Instant,
    granted_at: Instant,
    /// Send times of the heartbeats that were answered with 204.
    heartbeats: Vec<Instant>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_clients_with_one_identity_never_watch_together_for_longer_than_a_heartbeat() {
    for device_limit in [1, 4] {
        let harness = patient(&[]);
        let user = format!("copied-{device_limit}");
        let subscriber = Subscriber::make(&harness.admin(), &user, device_limit, "evict").await;
        let (one, other) = (harness.client(&user), harness.client(&user));
        let over = AtomicBool::new(false);
        let (ours, theirs) = tokio::join!(watch(one, device_limit, &over), watch(other, device_limit, &over));
        assert!(ours.len().min(theirs.len()) >= TURNS - 1, "they did not take turns");
        never_together(&ours, &theirs);
        never_together(&theirs, &ours);
        on_record(&harness, &subscriber, ours.len() + theirs.len()).await;
    }
}

/// Watches, and claims again after each loss, until one of the two clients has had `TURNS` screens.
async fn watch(client: Client, device_limit: u32, over: &AtomicBool) -> Vec<Screen> {
    let mut screens: Vec<Screen> = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let last = screens.last().map(|screen| screen.session.as_str());
        let mut screen = admitted(&client, device_limit, last).await;
        while let Some(sent) = heartbeat(&client, &screen.session).await {
            screen.heartbeats.push(sent);
            assert!(screen.heartbeats.len() < HEARTBEATS_MAX, "the other one does not take the screen");
            if over.load(Ordering::Relaxed) {
                break;
            }
            tokio::time::sleep(HEARTBEAT_INTERVAL).await;
        }
        screens.push(screen);
        if screens.len() == TURNS {
            over.store(true, Ordering::Relaxed);
        }
    }
    screens
}

/// Claims a screen with the shared identity and the client's last session.
async fn admitted(client: &Client, device_limit: u32, last: Option<&str>) -> Screen {
    let ask = json!({ "device_id": "tv-in-the-hall", "device_type": "tv", "session_id": last });
    let asked_at = Instant::now();
    let answer = client.post("/api/v1/devices/sessions", ask).await.expect(201);
    assert_eq!(answer["devices_in_use"], 1, "of {device_limit}: {answer:#}");
    assert_eq!(answer["evicted_session_ids"], json!([]));
    let session = text(&answer["session_id"]);
    Screen { session, asked_at, granted_at: Instant::now(), heartbeats: Vec::new() }
}

/// Sends a heartbeat. Returns the send time, or `None` if the session was superseded.
async fn heartbeat(client: &Client, session: &str) -> Option<Instant> {
    let sent = Instant::now();
    let ask = json!({ "session_id": session });
    let answer = client.post("/api/v1/devices/sessions/heartbeat", ask).await;
    match (answer.status, &answer.body["reason"]) {
        (204, _) => Some(sent),
        (410, Value::String(reason)) if reason == "superseded" => None,
        _ => panic!("{answer:?}"),
    }
}

/// Checks that our session is never renewed after a later claim of the other client was granted.
fn never_together(ours: &[Screen], theirs: &[Screen]) {
    for our in ours {
        let later = theirs.iter().filter(|their| their.asked_at > our.granted_at);
        let Some(thrown_out_at) = later.map(|their| their.granted_at).min() else { continue };
        let beside = our.heartbeats.iter().find(|&&sent| sent > thrown_out_at);
        assert!(beside.is_none(), "{} was renewed after it was superseded", our.session);
    }
}

/// Checks the audit log: every admission but the last was superseded. `Books` itself checks that no holder is
/// admitted twice.
async fn on_record(harness: &Harness, subscriber: &Subscriber, admissions: usize) {
    let books = Books::read(&harness.ledger()).await;
    let stories: Vec<_> = books.stories().filter(|(_, story)| story.pool == subscriber.user).collect();
    let superseded = stories.iter().filter(|(_, story)| story.reason() == Some("superseded")).count();
    assert_eq!((stories.len(), superseded), (admissions, admissions - 1));
    assert_eq!(books.live(&subscriber.user).len(), 1);
}
