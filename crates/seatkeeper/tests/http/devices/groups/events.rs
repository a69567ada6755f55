//! The stream of a group's events.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::steps::{GROUPS, beat, create, join, leave, subscribe};
use crate::harness::{Client, EventStream, Heard};
use crate::http::devices::player::{live, path};
use crate::http::tenant_client::{SESSIONS, TenantClient, text};

/// Time from a change to its event, on a machine that is not busy; the tests allow a multiple.
const PROMISED: Duration = Duration::from_secs(1);
const BUSY: u32 = 5;

/// Returns a tenant whose user `ann` may invite guests.
async fn open(ttl_seconds: u32) -> TenantClient {
    let api = TenantClient::open();
    let terms = json!({
        "device_limit": 1, "group_members_max": 3, "group_scope": "any_user", "ttl_seconds": ttl_seconds,
    });
    subscribe(&api, "ann", terms).await;
    api
}

async fn listen(client: &Client, group: &Value) -> EventStream {
    EventStream::open(client, &format!("{GROUPS}/{}/events", text(group)), None).await.expect("a stream")
}

/// Opens a stream after its first event, the present members.
async fn listen_for_changes(client: &Client, group: &Value) -> EventStream {
    let mut stream = listen(client, group).await;
    assert_eq!(stream.next().await.expect("the present members").name, "group");
    stream
}

/// Asserts the next event and its data, besides the group's id.
async fn assert_next(stream: &mut EventStream, name: &str, mut data: Value, group: &Value) {
    data["group_id"] = group.clone();
    assert_eq!(stream.next().await, Some(Heard { name: name.to_owned(), data }));
}

#[tokio::test]
async fn members_and_owner_hear_of_joins_leaves_and_the_next_host_within_a_second_on_every_node() {
    let api = open(90).await;
    let (ann, bob) = (api.user("ann"), api.user("bob"));
    let host = create(&ann, "tv").await;
    let group = &host["group_id"];
    let first = join(&bob, &host["join_code"], "phone").await.expect(201);
    let mut streams = Vec::new();
    // Consecutive requests go to consecutive nodes.
    for client in [&ann, &bob, &ann, &bob] {
        let mut stream = listen(client, group).await;
        let Heard { name, data } = stream.next().await.expect("the present members");
        assert_eq!((name.as_str(), &data["host_session_id"]), ("group", &host["session_id"]));
        assert_eq!(data["member_session_ids"].as_array().map(Vec::len), Some(2));
        streams.push(stream);
    }
    let started = Instant::now();
    let second = join(&bob, &host["join_code"], "tablet").await.expect(201);
    for stream in &mut streams {
        let joined = json!({ "session_id": second["session_id"], "members": 3 });
        assert_next(stream, "member_joined", joined, group).await;
    }
    leave(&ann, group, &host["session_id"]).await.expect(204);
    for stream in &mut streams {
        let left = json!({ "session_id": host["session_id"], "members": 2, "reason": "released" });
        assert_next(stream, "member_left", left, group).await;
        assert_next(stream, "host_changed", json!({ "host_session_id": first["session_id"] }), group).await;
    }
    ann.delete(&path(group)).await.expect(204);
    for stream in &mut streams {
        assert_next(stream, "group_ended", json!({ "reason": "revoked" }), group).await;
        assert_eq!(stream.next().await, None, "nothing comes after the end");
    }
    assert!(started.elapsed() < BUSY * PROMISED, "{:?}", started.elapsed());
}

#[tokio::test]
async fn the_silence_of_the_host_is_told_when_it_expires() {
    let api = open(3).await;
    let (ann, bob) = (api.user("ann"), api.user("bob"));
    let host = create(&ann, "tv").await;
    let group = &host["group_id"];
    let guest = join(&bob, &host["join_code"], "phone").await.expect(201);
    let mut stream = listen_for_changes(&bob, group).await;
    let beats = async {
        loop {
            beat(&bob, &guest["session_id"]).await.expect(200);
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    let heard =
        async { [stream.next().await, stream.next().await].map(|heard| heard.expect("an event").name) };
    tokio::select! {
        () = beats => {}
        heard = heard => assert_eq!(heard, ["member_left", "host_changed"]),
    }
}

#[tokio::test]
async fn the_stream_of_a_guest_ends_with_its_membership_and_strangers_have_none() {
    let api = open(90).await;
    let (ann, bob) = (api.user("ann"), api.user("bob"));
    let host = create(&ann, "tv").await;
    let group = &host["group_id"];
    let guest = join(&bob, &host["join_code"], "phone").await.expect(201);
    let mut stream = listen_for_changes(&bob, group).await;
    leave(&ann, group, &guest["session_id"]).await.expect(204);
    let left = json!({ "session_id": guest["session_id"], "members": 1, "reason": "revoked" });
    assert_next(&mut stream, "member_left", left, group).await;
    assert_eq!(stream.next().await, None, "the guest is out");
    for stranger in [&bob, &api.neighbour().user("ann")] {
        let refused = EventStream::open(stranger, &format!("{GROUPS}/{}/events", text(group)), None).await;
        assert_eq!(refused.expect_err("no stream").status, 404);
    }
}

/// Asserts that the stream tells the end of the screen as `released`. The last member's departure may come before.
async fn assert_screen_given_back(stream: &mut EventStream, group: &Value) {
    let mut heard = stream.next().await.expect("an event");
    if heard.name == "member_left" {
        assert_eq!((&heard.data["members"], &heard.data["reason"]), (&json!(0), &json!("revoked")));
        heard = stream.next().await.expect("an event");
    }
    let data = json!({ "group_id": group, "reason": "released" });
    assert_eq!(heard, Heard { name: "group_ended".to_owned(), data });
    assert_eq!(stream.next().await, None, "nothing comes after the end");
}

#[tokio::test]
async fn an_operator_ends_members_within_a_second_on_every_node_and_the_last_gives_the_screen_back() {
    let api = open(90).await;
    let (ann, bob) = (api.user("ann"), api.user("bob"));
    let member = |session: &Value| format!("{SESSIONS}/{}", text(session));
    for in_one_request in [false, true] {
        let host = create(&ann, "tv").await;
        let group = &host["group_id"];
        let guest = join(&bob, &host["join_code"], "phone").await.expect(201);
        let (mut owner, mut guests) = (Vec::new(), Vec::new());
        // Consecutive requests go to consecutive nodes, and three streams of a user are too many for a node.
        for _ in 0..2 {
            owner.push(listen_for_changes(&ann, group).await);
            guests.push(listen_for_changes(&bob, group).await);
        }
        let started = Instant::now();
        api.admin().delete(&member(&guest["session_id"])).await.expect(204);
        let left = json!({ "session_id": guest["session_id"], "members": 1, "reason": "revoked" });
        for stream in owner.iter_mut().chain(&mut guests) {
            assert_next(stream, "member_left", left.clone(), group).await;
        }
        for stream in &mut guests {
            assert_eq!(stream.next().await, None, "the guest is out");
        }
        if in_one_request {
            let pool = format!("{SESSIONS}?pool_kind=group&pool={}", text(group));
            assert_eq!(api.admin().delete(&pool).await.expect(200), json!({ "ended": 1 }));
        } else {
            api.admin().delete(&member(&host["session_id"])).await.expect(204);
        }
        for stream in &mut owner {
            assert_screen_given_back(stream, group).await;
        }
        assert!(started.elapsed() < BUSY * PROMISED, "{:?}", started.elapsed());
        assert_eq!(live(&ann).await, [] as [Value; 0]);
    }
}
