//! Guests: devices of other users of the tenant, in a group whose plan admits every user.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::json;

use super::steps::{GROUPS, assert_refused, beat, create, device, join, leave, subscribe, with};
use crate::http::devices::player::live;
use crate::http::exchange::assert_problem;
use crate::http::tenant_client::{DEVICES, TenantClient, text};

/// The deadline of a record.
const DEADLINE: Duration = Duration::from_secs(20);

/// Removals of a guest that repeats its join.
const ROUNDS: u32 = 12;

/// Repeats of a join around a removal. A group takes no more joins of a guest within an hour.
const REPEATS: u32 = 8;
const BETWEEN_REPEATS: Duration = Duration::from_millis(1);

/// Returns a tenant whose user `ann` has a screen, and may invite two guests.
async fn open() -> TenantClient {
    let api = TenantClient::open();
    let terms = json!({ "device_limit": 1, "group_members_max": 3, "group_scope": "any_user" });
    subscribe(&api, "ann", terms).await;
    api
}

#[tokio::test]
async fn a_guest_pays_no_screen_and_the_host_pays_one() {
    let api = open().await;
    let (ann, bob) = (api.user("ann"), api.user("bob"));
    let host = create(&ann, "tv").await;
    let guest = join(&bob, &host["join_code"], "tv").await.expect(201);
    assert_eq!((&guest["group_id"], &guest["members"]), (&host["group_id"], &json!(2)));
    assert!(live(&bob).await.is_empty(), "a guest has no screen");
    assert_eq!(live(&ann).await, [host["group_id"].clone()]);

    let group = format!("{GROUPS}/{}", text(&host["group_id"]));
    assert_eq!(bob.get(&group).await.expect(200)["members"].as_array().map(Vec::len), Some(2));
    assert_problem(&api.user("eve").get(&group).await, 404, "no member");
    let alive = beat(&bob, &guest["session_id"]).await.expect(200);
    assert_eq!(alive["host_session_id"], host["session_id"]);
}

#[tokio::test]
async fn a_member_reads_type_and_address_of_devices_of_its_own_user_alone() {
    let api = open().await;
    let (ann, bob) = (api.user("ann"), api.user("bob"));
    let host = create(&ann, "tv").await;
    let guest = join(&bob, &host["join_code"], "phone").await.expect(201);
    let group = format!("{GROUPS}/{}", text(&host["group_id"]));
    for (reader, own) in [(&ann, &host), (&bob, &guest)] {
        let began = Instant::now();
        // The details of a device are read from the record, which follows the answer.
        let members = loop {
            let members = reader.get(&group).await.expect(200)["members"].clone();
            let members = members.as_array().expect("a list").clone();
            if members.iter().any(|member| member.get("device_type").is_some()) {
                break members;
            }
            assert!(began.elapsed() < DEADLINE, "no member is on record: {members:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        for member in members {
            let is_own = member["session_id"] == own["session_id"];
            assert_eq!(member.get("device_type").is_some(), is_own, "{member}");
            assert_eq!(member.get("ip").is_some(), is_own, "{member}");
        }
    }
}

#[tokio::test]
async fn equal_names_of_devices_of_two_users_are_two_members() {
    let api = open().await;
    let (ann, bob) = (api.user("ann"), api.user("bob"));
    let host = create(&ann, "tv").await;
    let guest = join(&bob, &host["join_code"], "tv").await.expect(201);
    assert_ne!(guest["session_id"], host["session_id"]);
    assert_problem(&beat(&bob, &host["session_id"]).await, 404, "another user's member");
    let forged = join(&api.user("b"), &host["join_code"], "ob:tv").await.expect(201);
    assert_ne!(forged["session_id"], guest["session_id"]);
}

#[tokio::test]
async fn a_guest_ends_its_own_membership_alone_and_the_owner_ends_any() {
    let api = open().await;
    let (ann, bob) = (api.user("ann"), api.user("bob"));
    let host = create(&ann, "tv").await;
    let group = &host["group_id"];
    let guest = join(&bob, &host["join_code"], "phone").await.expect(201);
    assert_problem(&leave(&bob, group, &host["session_id"]).await, 404, "the host");
    leave(&bob, group, &guest["session_id"]).await.expect(204);
    assert_eq!(beat(&bob, &guest["session_id"]).await.expect(410)["reason"], "released");
    let again = join(&bob, &host["join_code"], "phone").await.expect(201);
    leave(&ann, group, &host["session_id"]).await.expect(204);
    let alive = beat(&bob, &again["session_id"]).await.expect(200);
    assert_eq!(alive["host_session_id"], again["session_id"], "a guest may be the host");
    assert_eq!(live(&ann).await, std::slice::from_ref(group), "the owner still pays");
    leave(&bob, group, &again["session_id"]).await.expect(204);
    assert!(live(&ann).await.is_empty(), "the last member gives the screen back");
}

#[tokio::test]
async fn a_removed_guest_needs_a_newer_code_and_nobody_else_does() {
    let api = open().await;
    let (ann, bob, eve) = (api.user("ann"), api.user("bob"), api.user("eve"));
    let session = super::admit(&ann, "tv").await["session_id"].clone();
    let ask = with(device("tv"), "session_id", &session);
    let host = ann.post(GROUPS, ask.clone()).await.expect(201);
    let (group, code) = (&host["group_id"], &host["join_code"]);
    let guest = join(&bob, code, "phone").await.expect(201);
    leave(&ann, group, &guest["session_id"]).await.expect(204);
    assert_eq!(beat(&bob, &guest["session_id"]).await.expect(410)["reason"], "revoked");
    for device in ["phone", "tablet"] {
        assert_refused(&join(&bob, code, device).await, "join-code-refused");
    }
    let other = join(&eve, code, "phone").await.expect(201);
    leave(&eve, group, &other["session_id"]).await.expect(204);
    join(&eve, code, "phone").await.expect(201);
    let newer = ann.post(GROUPS, ask).await.expect(201);
    assert_eq!(&newer["group_id"], group);
    join(&bob, &newer["join_code"], "phone").await.expect(201);
}

#[tokio::test]
async fn an_older_code_does_not_count_for_a_guest_that_a_newer_code_has_admitted() {
    let api = open().await;
    let (ann, bob) = (api.user("ann"), api.user("bob"));
    let session = super::admit(&ann, "tv").await["session_id"].clone();
    let ask = with(device("tv"), "session_id", &session);
    let older = ann.post(GROUPS, ask.clone()).await.expect(201);
    let guest = join(&bob, &older["join_code"], "phone").await.expect(201);
    leave(&ann, &older["group_id"], &guest["session_id"]).await.expect(204);
    let newer = ann.post(GROUPS, ask).await.expect(201);
    let again = join(&bob, &newer["join_code"], "phone").await.expect(201);
    assert_refused(&join(&bob, &older["join_code"], "phone").await, "join-code-refused");
    let repeated = join(&bob, &newer["join_code"], "phone").await.expect(201);
    assert_eq!(repeated["session_id"], again["session_id"], "the refusal ends no membership");
    beat(&bob, &again["session_id"]).await.expect(200);
}

/// The guest repeats its join all the while. A repeat that found the guest still a member may claim a place after the
/// removal.
#[tokio::test]
async fn a_guest_that_is_removed_while_it_repeats_its_join_stays_out() {
    let api = TenantClient::open_with(&[("LIMITS_DEVICES_ACQUIRES_PER_MINUTE", "0")]);
    let terms = json!({ "device_limit": 1, "group_members_max": 3, "group_scope": "any_user" });
    subscribe(&api, "ann", terms).await;
    let (ann, bob) = (api.user("ann"), api.user("bob"));
    for round in 0..ROUNDS {
        let host = create(&ann, "tv").await;
        let (group, code) = (&host["group_id"], &host["join_code"]);
        let guest = join(&bob, code, "phone").await.expect(201);
        let repeats = (0..REPEATS).map(|number| {
            let bob = &bob;
            async move {
                tokio::time::sleep(number * BETWEEN_REPEATS).await;
                join(bob, code, "phone").await
            }
        });
        let (_, removed) = tokio::join!(join_all(repeats), leave(&ann, group, &guest["session_id"]));
        removed.expect(204);
        let shown = ann.get(&format!("{GROUPS}/{}", text(group))).await.expect(200);
        assert_eq!(shown["members"].as_array().map(Vec::len), Some(1), "round {round}: {shown}");
        leave(&ann, group, &host["session_id"]).await.expect(204);
    }
}

#[tokio::test]
async fn a_restart_does_not_forget_a_removed_guest() {
    let mut api = TenantClient::open_with(&[("DEVICES_DURABILITY", "ledger")]);
    let terms = json!({ "device_limit": 1, "group_members_max": 3, "group_scope": "any_user" });
    subscribe(&api, "ann", terms).await;
    let host = create(&api.user("ann"), "tv").await;
    let guest = join(&api.user("bob"), &host["join_code"], "phone").await.expect(201);
    leave(&api.user("ann"), &host["group_id"], &guest["session_id"]).await.expect(204);
    api.restart();
    assert_refused(&join(&api.user("bob"), &host["join_code"], "phone").await, "join-code-refused");
    join(&api.user("eve"), &host["join_code"], "phone").await.expect(201);
}

#[tokio::test]
async fn the_end_of_the_screen_ends_the_guests() {
    let api = open().await;
    let (ann, bob) = (api.user("ann"), api.user("bob"));
    let host = create(&ann, "tv").await;
    let guest = join(&bob, &host["join_code"], "phone").await.expect(201);
    super::admit(&ann, "tablet").await;
    assert_eq!(beat(&bob, &guest["session_id"]).await.expect(410)["reason"], "evicted");
    assert_refused(&join(&bob, &host["join_code"], "phone").await, "join-code-refused");
}

#[tokio::test]
async fn a_guest_that_takes_a_screen_of_its_own_leaves_the_named_group() {
    let api = open().await;
    let (ann, bob) = (api.user("ann"), api.user("bob"));
    let host = create(&ann, "tv").await;
    let guest = join(&bob, &host["join_code"], "phone").await.expect(201);
    let ask = with(device("phone"), "group_member_session_id", &guest["session_id"]);
    let foreign = with(device("phone"), "group_member_session_id", &host["session_id"]);
    bob.post(DEVICES, foreign).await.expect(201);
    assert_eq!(
        beat(&ann, &host["session_id"]).await.expect(200)["members"],
        2,
        "another user's member stays"
    );
    bob.post(DEVICES, ask).await.expect(201);
    assert_eq!(beat(&bob, &guest["session_id"]).await.expect(410)["reason"], "released");
    assert_eq!(beat(&ann, &host["session_id"]).await.expect(200)["members"], 1);
}

#[tokio::test]
async fn a_code_for_guests_counts_in_its_tenant_alone_and_while_the_plan_admits_guests() {
    let api = open().await.at_one_node();
    let host = create(&api.user("ann"), "tv").await;
    let code = &host["join_code"];
    assert_refused(&join(&api.neighbour().user("bob"), code, "phone").await, "join-code-refused");
    api.admin()
        .patch("/api/v1/admin/plans/of-ann", Some(json!({ "group_scope": "same_user" })))
        .await
        .expect(200);
    assert_refused(&join(&api.user("bob"), code, "phone").await, "join-code-refused");
    join(&api.user("ann"), code, "phone").await.expect(201);
}
