//! A player that reconnects, or connects late.

use serde_json::{Value, json};

use super::{events_path, listen, watch_and_listen};
use crate::TOPOLOGY;
use crate::harness::{Client, EventStream, Heard};
use crate::http::devices::player::{Player, change_plan, live, path};
use crate::http::exchange::assert_problem;
use crate::http::tenant_client::TenantClient;

async fn revoke(client: &Client, session: &Value) {
    client.delete(&path(session)).await.expect(204);
}

async fn next(stream: &mut EventStream) -> Heard {
    stream.next().await.expect("an event")
}

#[tokio::test]
async fn what_changed_meanwhile_is_told_once() {
    let api = TenantClient::open();
    api.subscription("ann", "premium").await;
    let tv = Player::new(&api, "ann", "tv");
    let (session, stream) = watch_and_listen(&tv).await;
    let first_id = stream.last_id.clone();
    drop(stream);
    for devices in [5, 6] {
        change_plan(&api, "premium", json!({ "device_limit": devices })).await;
    }
    let mut again = listen(&tv.client, &session, Some(&first_id)).await;
    let mut told = next(&mut again).await.data;
    // Another node may have seen only the first of the two changes.
    if TOPOLOGY.nodes() > 1 && told["device_limit"] == 5 {
        told = next(&mut again).await.data;
    }
    assert_eq!(told, json!({ "plan": "premium", "device_limit": 6 }));
    let heard_id = again.last_id.clone();
    drop(again);
    let mut once_more = listen(&tv.client, &session, Some(&heard_id)).await;
    revoke(&tv.client, &session).await;
    assert_eq!(next(&mut once_more).await.name, "revoked", "nothing is told twice");
}

#[tokio::test]
async fn an_end_meanwhile_is_told_and_then_there_is_no_more_to_hear() {
    let mut api = TenantClient::open_with(&[]);
    let tv = Player::new(&api, "ann", "tv");
    let (session, stream) = watch_and_listen(&tv).await;
    let id = stream.last_id.clone();
    drop(stream);
    let phone = Player::new(&api, "ann", "phone").watch().await;
    // A client that never listened before, and two streams at once, also get the end.
    for last_id in [Some(id.as_str()), Some(&id), None] {
        let mut stream = listen(&tv.client, &session, last_id).await;
        let Heard { name, data } = next(&mut stream).await;
        assert_eq!((name.as_str(), &data["by"]["session_id"]), ("evicted", &phone));
        assert_eq!(stream.next().await, None);
        let answer = EventStream::open(&tv.client, &events_path(&session), Some(&stream.last_id)).await;
        let answer = answer.expect_err("no stream");
        assert_eq!((answer.status, answer.body), (204, Value::Null));
    }
    api.restart();
    let tv = Player::new(&api, "ann", "tv");
    let mut stream = listen(&tv.client, &session, Some(&id)).await;
    assert_eq!(next(&mut stream).await.name, "evicted", "after a restart as well");
}

#[tokio::test]
async fn the_end_of_another_session_that_was_heard_hides_nothing() {
    let api = TenantClient::open();
    let tv = Player::new(&api, "ann", "tv");
    let (session, mut stream) = watch_and_listen(&tv).await;
    revoke(&tv.client, &session).await;
    assert_eq!(next(&mut stream).await.name, "revoked");
    let session = tv.watch().await;
    let mut stream = listen(&tv.client, &session, Some(&stream.last_id)).await;
    revoke(&tv.client, &session).await;
    assert_eq!(next(&mut stream).await.name, "revoked");
}

#[tokio::test]
async fn an_id_that_is_none_counts_for_nothing() {
    let api = TenantClient::open();
    let tv = Player::new(&api, "ann", "tv");
    let long = "9".repeat(10_000);
    for garbage in ["", " ", "x", "-1", "1-ended-ended", "99999999999999999999", "\u{fc}", "{}", &long] {
        let session = tv.watch().await;
        let mut stream = listen(&tv.client, &session, Some(garbage)).await;
        revoke(&tv.client, &session).await;
        assert_eq!(next(&mut stream).await.name, "revoked", "{garbage}");
    }
}

#[tokio::test]
async fn all_streams_of_a_session_hear_its_end() {
    let api = TenantClient::open();
    let tv = Player::new(&api, "ann", "tv");
    let (session, mut first) = watch_and_listen(&tv).await;
    let mut second = listen(&tv.client, &session, None).await;
    drop(listen(&tv.client, &session, None).await);
    let mut admins = listen(&api.admin(), &session, None).await;
    revoke(&tv.client, &session).await;
    for stream in [&mut first, &mut second, &mut admins] {
        assert_eq!(next(stream).await.name, "revoked");
    }
}

#[tokio::test]
async fn a_stream_goes_on_after_a_crash_of_the_server() {
    let mut api = TenantClient::open_with(&[]);
    let tv = Player::new(&api, "ann", "tv");
    let (session, mut stream) = watch_and_listen(&tv).await;
    // After the list shows the session, its record is on disk.
    live(&tv.client).await;
    api.restart();
    assert_eq!(stream.next().await, None);
    let tv = Player::new(&api, "ann", "tv");
    let mut stream = listen(&tv.client, &session, Some(&stream.last_id)).await;
    revoke(&tv.client, &session).await;
    assert_eq!(next(&mut stream).await.name, "revoked");
}

#[tokio::test]
async fn another_s_session_and_one_that_never_was_look_the_same() {
    let api = TenantClient::open();
    let tv = Player::new(&api, "ann", "tv");
    let ended = Player::new(&api, "bob", "tv").watch().await;
    let running = Player::new(&api, "bob", "phone").watch().await;
    let mut answers = Vec::new();
    for session in [running, ended, json!("0193d2f4-0007-8000-8abc-0123456789ab")] {
        for last_id in [None, Some("1-ended")] {
            let answer = EventStream::open(&tv.client, &events_path(&session), last_id).await;
            let answer = answer.expect_err("no stream");
            assert_problem(&answer, 404, "not ann's");
            answers.push(answer.body);
        }
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
}
