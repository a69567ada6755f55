//! Tests of `GET /api/v1/devices/sessions`.

use serde_json::json;

use super::player::{Player, ROAD, live};
use crate::http::exchange::exchange;
use crate::http::shown::shown;
use crate::http::tenant_client::{DEVICES, TenantClient, text};
use crate::http::until::until;

#[tokio::test]
async fn the_user_s_live_sessions_are_listed_with_what_the_user_knows_them_by() {
    let api = TenantClient::open();
    api.subscription("ann", "standard").await;
    let tv = Player::new(&api, "ann", "tv");
    let first = tv.watch().await;
    let phone = json!({ "device_id": "phone", "device_type": "mobile", "device_name": null });
    let phone = tv.moved(ROAD, "player/1").ask_with(phone).await.expect(201);
    Player::new(&api, "bob", "tv").watch().await;
    let page = tv.client.get(&format!("{DEVICES}?session_id={}", text(&first))).await.expect(200);
    assert_eq!(
        shown(&page),
        json!({ "items": [
            {
                "session_id": "[id]", "device_type": "mobile", "ip": "127.0.9.1",
                "started_at": "[time]", "last_heartbeat_at": "[time]", "current": false
            },
            {
                "session_id": "[id]", "device_type": "tv", "device_name": "tv", "ip": "127.0.0.1",
                "started_at": "[time]", "last_heartbeat_at": "[time]", "current": true
            }
        ] })
    );
    assert_eq!(live(&tv.client).await, [phone["session_id"].clone(), first.clone()]);
    tv.beat(&first).await.expect(204);
    assert_eq!(live(&tv.client).await, [first, phone["session_id"].clone()]);
}

#[tokio::test]
async fn nothing_is_current_by_another_s_session() {
    let api = TenantClient::open();
    let tv = Player::new(&api, "ann", "tv");
    tv.watch().await;
    let bobs = Player::new(&api, "bob", "tv").watch().await;
    for other in [text(&bobs), "0193d2f4-0007-8000-8abc-0123456789ab", "00000000-0000-0000-0000-000000000000"]
    {
        let page = tv.client.get(&format!("{DEVICES}?session_id={other}")).await.expect(200);
        assert_eq!(page["items"][0]["current"], false);
        assert_eq!(page["items"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_session_whose_time_is_over_is_not_listed_also_with_the_sweeper_off() {
    let api = TenantClient::open_with(&[
        ("DEVICES_TTL_SECONDS", "2"),
        ("REGISTRY_SWEEP_INTERVAL_MILLISECONDS", "0"),
    ]);
    let tv = Player::new(&api, "ann", "tv");
    tv.watch().await;
    until("nobody is in", async || {
        let left = live(&tv.client).await;
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await;
}

#[tokio::test]
async fn a_user_who_never_watched_has_no_sessions() {
    let page = TenantClient::open().user("ann").get(DEVICES).await.expect(200);
    assert_eq!(page, json!({ "items": [] }));
}

#[tokio::test]
async fn behind_a_trusted_proxy_a_device_is_where_the_proxy_says() {
    let trusting = [("SERVER_TRUSTED_PROXIES", "127.0.0.1, 10.0.0.0/8")];
    let api = TenantClient::open_with(&trusting);
    let said = "192.0.2.66, 203.0.113.7, 10.0.0.2";
    let ips = async |from: &Player, told: &str| {
        let request = from.client.http.post(format!("{}{DEVICES}", from.client.url()));
        let request = request.bearer_auth(&from.client.token).header("x-forwarded-for", said);
        let ask = json!({ "device_id": told, "device_type": "tv" });
        exchange(request.json(&ask)).await.expect(201);
        from.client.get(DEVICES).await.expect(200)["items"][0]["ip"].clone()
    };
    api.subscription("ann", "standard").await;
    let proxied = Player::new(&api, "ann", "tv");
    assert_eq!(ips(&proxied, "behind").await, "203.0.113.7");
    let direct = proxied.moved(ROAD, "player/1");
    assert_eq!(ips(&direct, "direct").await, ROAD.to_string());
}
