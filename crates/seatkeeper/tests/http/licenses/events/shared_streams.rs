//! Streams that many sessions share, by the parameter `with`.

use serde_json::{Value, json};

use crate::harness::{Answer, Client, EventStream, Heard};
use crate::http::exchange::{assert_field, assert_problem};
use crate::http::shown::shown;
use crate::http::tenant_client::{SESSIONS, TenantClient, session_path, text};
use crate::http::until::until;

/// The id of a session that never was.
const NEVER: &str = "0193d2f4-0007-8000-8abc-0123456789ab";

/// A UUID that is no id of a session.
const NO_SESSION_ID: &str = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";

fn events_path(session: &Value) -> String {
    format!("{}/events", session_path(session))
}

/// Opens a stream about the sessions.
async fn open(client: &Client, sessions: &[&Value]) -> Result<EventStream, Answer> {
    EventStream::open_shared(client, &events_path(sessions[0]), &sessions[1..]).await
}

/// Opens a stream about the sessions.
async fn listen(client: &Client, sessions: &[&Value]) -> EventStream {
    open(client, sessions).await.expect("a stream")
}

/// Takes seats of one license for `ann`. Returns the license and the sessions.
async fn seats<const N: usize>(api: &TenantClient) -> (Value, [Value; N]) {
    let license = api.license(json!({ "max_seats": N })).await;
    let mut sessions = [const { Value::Null }; N];
    for (number, session) in sessions.iter_mut().enumerate() {
        *session = api.seat(&license, "ann", &format!("laptop-{number}")).await;
    }
    (license, sessions)
}

/// Asserts that the next event is the end of the session.
async fn assert_end(stream: &mut EventStream, session: &Value, reason: &str) {
    let Heard { name, data } = stream.next().await.expect("an event");
    assert_eq!((name.as_str(), &data["session_id"]), (reason, session));
    assert_eq!(shown(&data), json!({ "session_id": "[id]", "reason": reason, "ended_at": "[time]" }));
}

/// Asserts that the stream tells each session as unknown next, in any order.
async fn assert_unknown(stream: &mut EventStream, sessions: &[&Value]) {
    let mut missing = sessions.to_vec();
    while !missing.is_empty() {
        let Heard { name, data } = stream.next().await.expect("an event");
        assert_eq!(name, "unknown");
        let place = missing.iter().position(|session| data == json!({ "session_id": session }));
        missing.swap_remove(place.unwrap_or_else(|| panic!("{data} is none of {missing:?}")));
    }
}

/// Asserts that the stream is over, and had no ids.
async fn assert_over(mut stream: EventStream) {
    assert_eq!(stream.next().await, None, "nothing is left to tell");
    assert_eq!(stream.last_id, "");
}

#[tokio::test]
async fn each_end_is_told_with_its_session_and_the_stream_closes_after_the_last() {
    let api = TenantClient::open();
    let (license, [a, b, c]) = seats(&api).await;
    let ann = api.user("ann");
    let mut stream = listen(&ann, &[&a, &b, &c]).await;
    // A changed entitlement is not told.
    api.change(&license, json!({ "max_seats": 5 })).await;
    ann.release(&b).await.expect(204);
    assert_end(&mut stream, &b, "released").await;
    api.admin().delete(&format!("{SESSIONS}/{}", text(&a))).await.expect(204);
    assert_end(&mut stream, &a, "revoked").await;
    ann.heartbeat(&c).await.expect(200);
    ann.release(&c).await.expect(204);
    assert_end(&mut stream, &c, "released").await;
    assert_over(stream).await;
}

#[tokio::test]
async fn a_silent_session_is_told_as_expired_and_the_other_goes_on() {
    let api = TenantClient::open();
    let brief = api.license(json!({ "max_seats": 1, "ttl_seconds": 2 })).await;
    let brief = api.seat(&brief, "ann", "laptop-0").await;
    let (_, [kept]) = seats(&api).await;
    let ann = api.user("ann");
    let mut stream = listen(&ann, &[&kept, &brief]).await;
    assert_end(&mut stream, &brief, "expired").await;
    ann.release(&kept).await.expect(204);
    assert_end(&mut stream, &kept, "released").await;
    assert_over(stream).await;
}

#[tokio::test]
async fn an_end_before_the_stream_is_told_at_its_beginning() {
    let api = TenantClient::open();
    let (_, [a, b]) = seats(&api).await;
    let ann = api.user("ann");
    ann.release(&b).await.expect(204);
    let mut stream = listen(&ann, &[&a, &b]).await;
    assert_end(&mut stream, &b, "released").await;
    ann.release(&a).await.expect(204);
    assert_end(&mut stream, &a, "released").await;
    assert_over(stream).await;
    // A session named twice is told once.
    let mut late = listen(&ann, &[&a, &a, &a]).await;
    assert_end(&mut late, &a, "released").await;
    assert_over(late).await;
}

#[tokio::test]
async fn the_seat_of_another_and_a_seat_that_never_was_are_unknown_alike() {
    let api = TenantClient::open();
    let (_, [a, ended]) = seats(&api).await;
    api.user("ann").release(&ended).await.expect(204);
    let license = api.license(json!({ "max_seats": 2 })).await;
    let bobs = api.seat(&license, "bob", "desk-1").await;
    let bobs_ended = api.seat(&license, "bob", "desk-2").await;
    api.user("bob").release(&bobs_ended).await.expect(204);
    let strange = [bobs, bobs_ended, json!(NEVER), json!(NO_SESSION_ID)];
    let ann = api.user("ann");
    // The session in the path may be unknown as well.
    for first in &strange {
        let sessions: Vec<_> = [first, &a].into_iter().chain(&strange).collect();
        let mut stream = listen(&ann, &sessions).await;
        assert_unknown(&mut stream, &strange.each_ref()).await;
        drop(stream);
    }
    let mut stream = listen(&api.neighbour().admin(), &[&a, &ended]).await;
    assert_unknown(&mut stream, &[&a, &ended]).await;
    assert_over(stream).await;
    let mut stream = listen(&ann, &[&a, &strange[0]]).await;
    assert_unknown(&mut stream, &[&strange[0]]).await;
    ann.release(&a).await.expect(204);
    assert_end(&mut stream, &a, "released").await;
    assert_over(stream).await;
}

#[tokio::test]
async fn a_share_that_its_user_gives_up_is_unknown_from_then_on() {
    let api = TenantClient::open();
    let (license, [shared, kept]) = seats(&api).await;
    api.user("bob").acquire(&license["license_key"], "laptop-0").await.expect(200);
    let ann = api.user("ann");
    let mut stream = listen(&ann, &[&shared, &kept]).await;
    ann.release(&shared).await.expect(204);
    assert_unknown(&mut stream, &[&shared]).await;
    ann.release(&kept).await.expect(204);
    assert_end(&mut stream, &kept, "released").await;
    assert_over(stream).await;
}

/// Returns ids of sessions that never were.
fn invented<const N: usize>() -> [Value; N] {
    std::array::from_fn(|number| json!(format!("0193d2f4-0007-8000-8abc-0123456789{number:02}")))
}

#[tokio::test]
async fn sessions_that_never_were_are_limited_and_sessions_of_the_caller_are_not() {
    // Each node counts for itself.
    let api = TenantClient::open_with(&[("LIMITS_LICENSES_ACQUIRES_PER_MINUTE", "4")]).at_one_node();
    let (_, [a, b]) = seats(&api).await;
    let ann = api.user("ann");
    for _ in 0..4 {
        listen(&ann, &[&a, &b]).await;
    }
    let refused = open(&ann, &invented::<20>().each_ref()).await.expect_err("no stream");
    assert_problem(&refused, 429, "20 searches");
    assert!(refused.headers.contains_key("retry-after"));
}

#[tokio::test]
async fn a_stream_is_about_100_sessions_at_most() {
    let api = TenantClient::open_with(&[("LIMITS_LICENSES_ACQUIRES_PER_MINUTE", "1000")]);
    let (_, [a]) = seats(&api).await;
    let ann = api.user("ann");
    let more = invented::<100>();
    let more = more.each_ref();
    let hundred: Vec<_> = [&a, &a].into_iter().chain(more[..99].iter().copied()).collect();
    let mut stream = listen(&ann, &hundred).await;
    assert_unknown(&mut stream, &more[..99]).await;
    ann.release(&a).await.expect(204);
    assert_end(&mut stream, &a, "released").await;
    assert_over(stream).await;
    let refused = EventStream::open_shared(&ann, &events_path(&a), &more).await.expect_err("no stream");
    assert_field(&refused, "with", "101 sessions");
}

#[tokio::test]
async fn a_list_that_is_not_valid_is_refused() {
    let api = TenantClient::open();
    let (_, [a]) = seats(&api).await;
    let (ann, id) = (api.user("ann"), text(&a));
    for with in ["", ",", "x", "%00", &format!("{id},"), &format!("{id},x"), &format!("{id}&with={id}")] {
        let refused = ann.get(&format!("{}?with={with}", events_path(&a))).await;
        assert_field(&refused, "with", with);
    }
    let refused = ann.get(&format!("{}?with={id}", events_path(&json!("x")))).await;
    assert_field(&refused, "session_id", "no UUID in the path");
    let refused = open(&api.client("x".into()), &[&a, &a]).await.expect_err("no stream");
    assert_problem(&refused, 401, "no token");
}

#[tokio::test]
async fn a_stream_of_many_sessions_counts_once_among_the_streams_of_its_user() {
    // Each node counts for itself.
    let api = TenantClient::open_with(&[("SERVER_EVENT_STREAMS_PER_USER_MAX", "1")]).at_one_node();
    let (_, [a, b]) = seats(&api).await;
    let ann = api.user("ann");
    let stream = listen(&ann, &[&a, &b]).await;
    let refused = open(&ann, &[&a, &b]).await.expect_err("no stream");
    assert_problem(&refused, 429, "a second stream");
    drop(stream);
    let mut stream = until("the place is free", async || {
        open(&ann, &[&a, &b]).await.map_err(|answer| answer.body.to_string())
    })
    .await;
    for session in [&a, &b] {
        ann.release(session).await.expect(204);
        assert_end(&mut stream, session, "released").await;
    }
    assert_over(stream).await;
    // A stream with nothing left to tell frees its place.
    until("the place is free again", async || {
        open(&ann, &[&a, &b]).await.map_err(|answer| answer.body.to_string())
    })
    .await;
}

#[tokio::test]
async fn a_node_without_a_place_for_every_session_refuses_the_stream() {
    // The limit is per node.
    let api = TenantClient::open_with(&[("SERVER_EVENT_STREAMS_MAX", "2")]).at_one_node();
    let (_, [a, b, c]) = seats(&api).await;
    let ann = api.user("ann");
    let refused = open(&ann, &[&a, &b, &c]).await.expect_err("no stream");
    assert_problem(&refused, 503, "three sessions");
    assert!(refused.headers.contains_key("retry-after"));
    // The refused stream has taken no place. A session that is not the caller's takes none either.
    let mut stream = until("the places are free", async || {
        open(&ann, &[&a, &b, &json!(NEVER)]).await.map_err(|answer| answer.body.to_string())
    })
    .await;
    assert_unknown(&mut stream, &[&json!(NEVER)]).await;
    let mut strangers = listen(&api.user("bob"), &[&a, &b, &c]).await;
    assert_unknown(&mut strangers, &[&a, &b, &c]).await;
    assert_over(strangers).await;
}

#[tokio::test]
async fn the_sessions_of_one_user_do_not_take_the_places_of_all() {
    let limits = [("SERVER_EVENT_STREAMS_MAX", "4"), ("SERVER_EVENT_STREAMS_PER_USER_MAX", "2")];
    // Each node counts for itself.
    let api = TenantClient::open_with(&limits).at_one_node();
    let (license, [a, b, c]) = seats(&api).await;
    let ann = api.user("ann");
    let refused = open(&ann, &[&a, &b, &c]).await.expect_err("no stream");
    assert_problem(&refused, 429, "more than half of the node's places");
    assert_eq!(refused.body["type"], "/problems/too-many-event-streams");
    let _stream = listen(&ann, &[&a, &b]).await;
    let refused = open(&ann, &[&c, &c]).await.expect_err("no stream");
    assert_problem(&refused, 429, "a third session");
    api.change(&license, json!({ "max_seats": 5 })).await;
    let bobs = [api.seat(&license, "bob", "desk-1").await, api.seat(&license, "bob", "desk-2").await];
    listen(&api.user("bob"), &bobs.each_ref()).await;
}
