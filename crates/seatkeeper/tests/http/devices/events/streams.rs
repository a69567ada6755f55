//! The life of event streams: number, duration, and shutdown of the server.

use std::time::{Duration, Instant};

use super::{events_path, listen, watch_and_listen};
use crate::harness::{Client, EventStream, Harness};
use crate::http::devices::player::Player;
use crate::http::exchange::assert_problem;
use crate::http::tenant_client::{DEVICES, TenantClient};
use crate::http::until::until;

#[tokio::test]
async fn a_stream_too_many_is_refused_until_another_is_closed() {
    let api = TenantClient::open_with(&[("SERVER_EVENT_STREAMS_MAX", "2")]);
    // The limit is per node.
    let tv = Player::new(&api, "ann", "tv").at_one_node();
    let (session, first) = watch_and_listen(&tv).await;
    let second = listen(&tv.client, &session, None).await;
    let refused = EventStream::open(&tv.client, &events_path(&session), None).await.expect_err("no stream");
    assert_problem(&refused, 503, "a third");
    assert!(refused.headers.contains_key("retry-after"));
    // The refused stream does not end the device's session.
    tv.beat(&session).await.expect(204);
    drop(first);
    let mut third = until("a place is free", async || {
        let open = EventStream::open(&tv.client, &events_path(&session), None).await;
        open.map_err(|answer| answer.body.to_string())
    })
    .await;
    drop(second);
    tv.client.delete(DEVICES).await.expect(204);
    assert_eq!(third.next().await.expect("an event").name, "revoked");
    assert_eq!(third.next().await, None);
    // A stream that has sent the end frees its place as well.
    until("both places are free", async || {
        let session = tv.watch().await;
        let one = EventStream::open(&tv.client, &events_path(&session), None).await;
        let two = EventStream::open(&tv.client, &events_path(&session), None).await;
        if one.is_ok() && two.is_ok() { Ok(()) } else { Err(format!("{one:?} {two:?}")) }
    })
    .await;
}

#[tokio::test]
async fn one_user_does_not_take_the_streams_of_all() {
    let limits = [("SERVER_EVENT_STREAMS_MAX", "8"), ("SERVER_EVENT_STREAMS_PER_USER_MAX", "2")];
    let api = TenantClient::open_with(&limits);
    // Each node counts for itself.
    let tv = Player::new(&api, "ann", "tv").at_one_node();
    let (session, first) = watch_and_listen(&tv).await;
    let _second = listen(&tv.client, &session, None).await;
    let refused = EventStream::open(&tv.client, &events_path(&session), None).await.expect_err("no stream");
    assert_problem(&refused, 429, "a third");
    assert_eq!(refused.body["type"], "/problems/too-many-event-streams");
    assert!(refused.headers.contains_key("retry-after"));
    let bob = Player::new(&api, "bob", "tv").at_one_node();
    let (_, _bobs) = watch_and_listen(&bob).await;
    // Programs of the operator act for many users.
    let admin = Client::new(tv.client.url(), api.token("ops", "admin"));
    let mut streams = Vec::new();
    for _ in 0..4 {
        streams.push(listen(&admin, &session, None).await);
    }
    let refused = EventStream::open(&admin, &events_path(&session), None).await.expect_err("no stream");
    assert_problem(&refused, 429, "half of all streams");
    drop(first);
    until("a place is free", async || {
        let open = EventStream::open(&tv.client, &events_path(&session), None).await;
        open.map(drop).map_err(|answer| answer.body.to_string())
    })
    .await;
}

#[tokio::test]
async fn a_silent_stream_shows_that_it_is_there() {
    let api = TenantClient::open();
    let (_, mut stream) = watch_and_listen(&Player::new(&api, "ann", "tv")).await;
    assert_eq!(stream.comment().await, "still here");
}

#[tokio::test]
async fn proxies_are_told_to_pass_events_on_as_they_come() {
    let api = TenantClient::open();
    let tv = Player::new(&api, "ann", "tv");
    let session = tv.watch().await;
    let url = format!("{}{}", tv.client.url(), events_path(&session));
    let answer = tv.client.http.get(url).bearer_auth(&tv.client.token).send().await.unwrap();
    assert_eq!(answer.headers()["x-accel-buffering"], "no");
    assert_eq!(answer.headers()["cache-control"], "no-store");
}

#[tokio::test(flavor = "multi_thread")]
async fn open_streams_do_not_hold_up_the_server_s_end() {
    // The TTL of the device's session is longer than the server's shutdown timeout.
    let mut harness = Harness::open_with(&[("SERVER_SHUTDOWN_TIMEOUT_SECONDS", "20")]);
    let ask = serde_json::json!({ "device_id": "tv", "device_type": "tv" });
    let ann = harness.client("ann");
    let session = ann.post(DEVICES, ask).await.expect(201)["session_id"].clone();
    let mut stream = listen(&ann, &session, None).await;
    let mut shared =
        EventStream::open_shared(&ann, &events_path(&session), &[&session]).await.expect("a stream");
    let asked = Instant::now();
    let (status, log) = tokio::task::block_in_place(|| harness.stop());
    let took = asked.elapsed();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(took < Duration::from_secs(10), "it took {took:?}");
    for stream in [&mut stream, &mut shared] {
        assert_eq!(stream.next().await, None, "it is told nothing that is not so");
    }
}
