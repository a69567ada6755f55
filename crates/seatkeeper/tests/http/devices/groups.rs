//! Tests of `/api/v1/devices/groups`: devices that watch together on one screen.

use serde_json::{Value, json};

mod content;
mod events;
mod guests;
mod joins_per_hour;
mod screen;
mod steps;

use super::player::{self, live, path};
use crate::http::exchange::assert_problem;
use crate::http::tenant_client::{SESSIONS, TenantClient, text};
use crate::http::until::until;
use steps::{GROUPS, admit, assert_refused, beat, create, device, join, leave, subscribe, with};

/// Returns a tenant whose user `ann` has a screen, on a plan with groups of at most two members.
async fn open() -> TenantClient {
    let api = TenantClient::open_with(&[("DEVICES_DURABILITY", "ledger")]);
    subscribe(&api, "ann", json!({ "device_limit": 1, "group_members_max": 2 })).await;
    api
}

#[tokio::test]
async fn a_group_takes_one_screen_of_the_plan_and_the_last_member_gives_the_screen_back() {
    let api = open().await;
    let ann = api.user("ann");
    let first = create(&ann, "tv").await;
    let group = first["group_id"].clone();
    assert_eq!(first["host_session_id"], first["session_id"]);
    assert_eq!(
        live(&ann).await,
        std::slice::from_ref(&group),
        "one screen, and the device's own session has ended"
    );
    let second = join(&ann, &first["join_code"], "phone").await.expect(201);
    assert_eq!((&second["group_id"], &second["members"]), (&group, &json!(2)));
    assert_eq!(live(&ann).await, std::slice::from_ref(&group));
    let shown = ann.get(&format!("{GROUPS}/{}", text(&group))).await.expect(200);
    assert_eq!(shown["members"].as_array().unwrap().len(), 2);

    leave(&ann, &group, &first["session_id"]).await.expect(204);
    let alive = beat(&ann, &second["session_id"]).await.expect(200);
    assert_eq!(
        alive,
        json!({
            "group_id": group, "host_session_id": second["session_id"], "members": 1,
        })
    );
    assert_eq!(beat(&ann, &first["session_id"]).await.expect(410)["reason"], "released");
    leave(&ann, &group, &second["session_id"]).await.expect(204);
    assert_eq!(live(&ann).await, [] as [Value; 0]);
}

#[tokio::test]
async fn the_session_that_became_a_group_is_superseded_whether_screens_are_free_or_not() {
    for device_limit in [1, 2] {
        let api = TenantClient::open();
        subscribe(&api, "ann", json!({ "device_limit": device_limit, "group_members_max": 2 })).await;
        let ann = api.user("ann");
        let session = admit(&ann, "tv").await["session_id"].clone();
        ann.post(GROUPS, with(device("tv"), "session_id", &session)).await.expect(201);
        let over = player::beat(&ann, &session).await.expect(410);
        assert_eq!(over["reason"], "superseded", "{device_limit} screens");
    }
}

#[tokio::test]
async fn a_code_counts_for_devices_of_the_user_until_the_group_is_full_or_over() {
    let api = open().await;
    let ann = api.user("ann");
    let host = create(&ann, "tv").await;
    let code = &host["join_code"];
    let phone = join(&ann, code, "phone").await.expect(201);
    let again = join(&ann, code, "phone").await.expect(201);
    assert_eq!(again["session_id"], phone["session_id"], "the same device is one member");
    assert_refused(&join(&ann, code, "tablet").await, "group-full");
    assert_refused(&join(&api.user("bob"), code, "phone").await, "join-code-refused");
    assert_refused(&join(&api.neighbour().user("ann"), code, "phone").await, "join-code-refused");
    for guess in ["0".repeat(80), text(code).replace(&text(code)[70..], "0000000000")] {
        assert_refused(&join(&ann, &json!(guess), "phone").await, "join-code-refused");
    }
    ann.delete(&path(&host["group_id"])).await.expect(204);
    for member in [&host, &phone] {
        assert_eq!(beat(&ann, &member["session_id"]).await.expect(410)["reason"], "revoked");
    }
    assert_refused(&join(&ann, code, "phone").await, "join-code-refused");
}

#[tokio::test]
async fn a_new_device_evicts_the_group_as_a_whole() {
    let api = open().await;
    let ann = api.user("ann");
    let host = create(&ann, "tv").await;
    let member = join(&ann, &host["join_code"], "phone").await.expect(201);
    let newcomer = admit(&ann, "tablet").await;
    assert_eq!(newcomer["evicted_session_ids"], json!([host["group_id"]]));
    for ended in [&member, &host] {
        assert_eq!(beat(&ann, &ended["session_id"]).await.expect(410)["reason"], "evicted");
    }
    assert_eq!(live(&ann).await, [newcomer["session_id"].clone()]);
}

#[tokio::test]
async fn a_device_that_takes_a_screen_of_its_own_leaves_its_group_first() {
    let api = TenantClient::open();
    subscribe(&api, "ann", json!({ "device_limit": 2, "group_members_max": 3 })).await;
    let ann = api.user("ann");
    let host = create(&ann, "tv").await;
    let phone = join(&ann, &host["join_code"], "phone").await.expect(201);
    let own = admit(&ann, "phone").await;
    assert_eq!(beat(&ann, &phone["session_id"]).await.expect(410)["reason"], "released");
    assert_eq!(beat(&ann, &host["session_id"]).await.expect(200)["members"], 1);
    admit(&ann, "tv").await;
    assert_eq!(beat(&ann, &host["session_id"]).await.expect(410)["reason"], "released");
    let live = live(&ann).await;
    assert!(!live.contains(&host["group_id"]), "the last member has left: {live:?}");
    assert!(live.contains(&own["session_id"]), "{live:?}");
}

#[tokio::test]
async fn a_repeated_creation_returns_the_same_group() {
    let api = TenantClient::open();
    for user in ["ann", "bob"] {
        subscribe(&api, user, json!({ "device_limit": 2, "group_members_max": 2 })).await;
    }
    let ann = api.user("ann");
    let session = admit(&ann, "tv").await["session_id"].clone();
    let ask = with(device("tv"), "session_id", &session);
    let first = ann.post(GROUPS, ask.clone()).await.expect(201);
    let second = ann.post(GROUPS, ask.clone()).await.expect(201);
    for same in ["group_id", "session_id"] {
        assert_eq!(first[same], second[same]);
    }
    assert_eq!(live(&ann).await, [first["group_id"].clone()]);
    assert_problem(&api.user("bob").post(GROUPS, ask).await, 404, "another user's session");
}

#[tokio::test]
async fn another_user_neither_sees_nor_keeps_nor_leaves_a_group() {
    let api = open().await;
    let host = create(&api.user("ann"), "tv").await;
    let (group, session) = (&host["group_id"], &host["session_id"]);
    for other in [api.user("bob"), api.neighbour().user("ann")] {
        assert_problem(&other.get(&format!("{GROUPS}/{}", text(group))).await, 404, "read");
        assert_problem(&beat(&other, session).await, 404, "heartbeat");
        assert_problem(&leave(&other, group, session).await, 404, "leave");
    }
    beat(&api.user("ann"), session).await.expect(200);
}

#[tokio::test]
async fn an_operator_who_takes_a_session_for_a_group_ends_nothing() {
    let api = open().await;
    let ann = api.user("ann");
    let session = admit(&ann, "tv").await["session_id"].clone();
    let pool = format!("{SESSIONS}?pool_kind=group&pool={}", text(&session));
    assert_eq!(api.admin().delete(&pool).await.expect(200), json!({ "ended": 0 }));
    assert_eq!(live(&ann).await, [session]);
}

#[tokio::test]
async fn a_silent_host_is_succeeded_by_the_eldest_member() {
    let api = TenantClient::open();
    subscribe(&api, "ann", json!({ "device_limit": 1, "group_members_max": 3, "ttl_seconds": 3 })).await;
    let ann = api.user("ann");
    let host = create(&ann, "tv").await;
    let eldest = join(&ann, &host["join_code"], "phone").await.expect(201);
    assert_eq!(eldest["host_session_id"], host["session_id"]);
    until("the host is succeeded", async || {
        let alive = beat(&ann, &eldest["session_id"]).await.expect(200);
        if alive["host_session_id"] == eldest["session_id"] { Ok(()) } else { Err(alive.to_string()) }
    })
    .await;
    assert_eq!(live(&ann).await, [host["group_id"].clone()], "the members' heartbeats keep the screen");
}

#[tokio::test]
async fn a_group_survives_a_restart() {
    let mut api = open().await;
    let host = create(&api.user("ann"), "tv").await;
    let member = join(&api.user("ann"), &host["join_code"], "phone").await.expect(201);
    api.restart();
    let ann = api.user("ann");
    let alive = until("the group serves", async || {
        let answer = beat(&ann, &member["session_id"]).await;
        if answer.status == 503 { Err(answer.body.to_string()) } else { Ok(answer.expect(200)) }
    })
    .await;
    assert_eq!((&alive["host_session_id"], &alive["members"]), (&host["session_id"], &json!(2)));
    assert_refused(&join(&ann, &host["join_code"], "tablet").await, "group-full");
}

#[tokio::test]
async fn without_a_subscription_to_a_plan_with_groups_there_are_none() {
    let api = TenantClient::open();
    api.subscription("bob", "premium").await;
    for user in ["ann", "bob"] {
        let user = api.user(user);
        let session = admit(&user, "tv").await["session_id"].clone();
        let ask = with(device("tv"), "session_id", &session);
        assert_refused(&user.post(GROUPS, ask).await, "groups-off");
        assert_eq!(live(&user).await, [session]);
    }
}

/// Changes the plan of user `ann` to a plan without groups.
async fn give_up_groups(api: &TenantClient) {
    player::change_plan(api, "of-ann", json!({ "group_members_max": 0 })).await;
}

#[tokio::test]
async fn a_plan_that_gives_up_groups_takes_no_more_members_and_ends_none() {
    let api = open().await.at_one_node();
    let ann = api.user("ann");
    let host = create(&ann, "tv").await;
    give_up_groups(&api).await;
    assert_refused(&join(&ann, &host["join_code"], "phone").await, "groups-off");
    beat(&ann, &host["session_id"]).await.expect(200);
}

/// A group may outlive the groups of its plan. A device leaves such a group too: after a denial by the screen of the
/// group, or after an admission beside the screen.
#[tokio::test]
async fn a_device_leaves_its_group_also_after_the_plan_has_given_up_groups() {
    let api = TenantClient::open().at_one_node();
    let terms = json!({ "device_limit": 1, "group_members_max": 2, "when_full": "deny" });
    subscribe(&api, "ann", terms).await;
    let ann = api.user("ann");
    let host = create(&ann, "tv").await;
    give_up_groups(&api).await;
    let own = admit(&ann, "tv").await["session_id"].clone();
    assert_eq!(live(&ann).await, [own]);
    assert_eq!(beat(&ann, &host["session_id"]).await.expect(410)["reason"], "released");
}

/// A plain heartbeat would keep a screen whose members are all silent.
#[tokio::test]
async fn a_plain_heartbeat_finds_no_screen_of_a_group() {
    for device_limit in [1, 2] {
        let api = TenantClient::open();
        subscribe(&api, "ann", json!({ "device_limit": device_limit, "group_members_max": 2 })).await;
        let host = create(&api.user("ann"), "tv").await;
        for caller in [api.user("ann"), api.admin()] {
            assert_problem(&player::beat(&caller, &host["group_id"]).await, 404, "the screen of a group");
        }
        beat(&api.user("ann"), &host["session_id"]).await.expect(200);
    }
}
