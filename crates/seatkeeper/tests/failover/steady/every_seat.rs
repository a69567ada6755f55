//! The end of a storm: every seat and every screen can be taken, and no more.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::devices::{self, Screens};
use crate::failover::support::{Nodes, answered};
use crate::harness::Answer;
use crate::support::scene::License;

const PAUSE: Duration = Duration::from_millis(100);

/// The times that a pool is filled. On a busy machine, a session may end before the last claim.
const TRIES_MAX: usize = 5;

/// Takes every seat, fails to take another, and releases all. Forgotten sessions may hold seats for as long as `ghosts`.
pub(super) async fn every_seat_is_there(nodes: &Nodes, license: &License, ghosts: Duration) {
    let client = nodes.harnesses[0].client("crowd");
    let acquire = async |machine: &str| answered(async || client.acquire(&license.key, machine).await).await;
    let release = async |session: &Value| {
        let given_back = answered(async || client.release(session).await).await;
        assert!([204, 404].contains(&given_back.status), "{:#}", given_back.body);
    };
    let started = Instant::now();
    let take = async |number: u32| {
        let machine = format!("last-{number}");
        loop {
            let answer = acquire(&machine).await;
            if answer.status != 403 || started.elapsed() > 2 * ghosts {
                return session_of(&answer);
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    for _ in 0..TRIES_MAX {
        let sessions = join_all((0..license.seats).map(&take)).await;
        let more = acquire("one-too-many").await;
        let beats =
            sessions.iter().map(async |session| answered(async || client.heartbeat(session).await).await);
        let is_full = is_full(&more, &join_all(beats).await);
        join_all(sessions.iter().map(&release)).await;
        if is_full {
            return;
        }
        release(&more.body["session_id"]).await;
    }
    panic!("the seats end before another is asked for");
}

/// Releases every screen of a subscriber, takes every screen, is denied one more, and releases every screen.
pub(super) async fn every_screen_is_there(screens: &Screens) {
    let client = &screens.client;
    let claim = async |device: String| {
        let ask = json!({ "device_id": device, "device_type": "tv" });
        answered(async || client.post(devices::PATH, ask.clone()).await).await
    };
    let beat = async |session: &Value| {
        let path = format!("{}/heartbeat", devices::PATH);
        answered(async || client.post(&path, json!({ "session_id": session })).await).await
    };
    let give_up = async || answered(async || client.delete(devices::PATH).await).await.expect(204);
    for _ in 0..TRIES_MAX {
        give_up().await;
        let claims = join_all((0..screens.limit).map(|number| claim(format!("last-{number}")))).await;
        let sessions: Vec<_> = claims.iter().map(session_of).collect();
        let more = claim("one-too-many".to_owned()).await;
        let is_full = is_full(&more, &join_all(sessions.iter().map(&beat)).await);
        give_up().await;
        if is_full {
            return;
        }
    }
    panic!("the screens end before another is asked for");
}

/// Returns the session of an admission. A retry after a 503 may find the session that the first attempt began.
fn session_of(answer: &Answer) -> Value {
    assert!([200, 201].contains(&answer.status), "{:#}", answer.body);
    answer.body["session_id"].clone()
}

/// Returns whether a full pool has denied a claim. Fails the test if the claim was admitted and every earlier session lives
/// on, by its heartbeat after the claim.
fn is_full(claim: &Answer, beats: &[Answer]) -> bool {
    if claim.status == 403 {
        return true;
    }
    session_of(claim);
    let expired = beats.iter().filter(|beat| beat.status == 410 && beat.body["reason"] == "expired").count();
    assert!(expired > 0, "one holder too many: {:#}", claim.body);
    false
}
