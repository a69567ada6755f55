//! Headers that no device would send.

use reqwest::Method;
use reqwest::header::{HeaderValue, USER_AGENT};
use serde_json::json;

use super::Siege;
use crate::http::exchange::exchange;
use crate::http::tenant_client::{DEVICES, SESSIONS, text};

/// The most characters of a user agent that are recorded.
const USER_AGENT_CHARS_MAX: usize = 500;

#[tokio::test]
async fn any_user_agent_tells_a_device_and_what_can_be_read_of_it_goes_on_record() {
    let siege = Siege::begin().await;
    let (long, wide) = ("x".repeat(16_384), "💥".repeat(4_000));
    let agents: [&[u8]; 8] = [
        b"",
        b" ",
        b"a\tb",
        b"\xff\xfe\xc0\x80",
        "\u{85}\u{9b}31m".as_bytes(),
        b"'; DROP TABLE sessions;--",
        long.as_bytes(),
        wide.as_bytes(),
    ];
    for agent in agents {
        let mut admitted = Vec::new();
        for _ in 0..2 {
            let request = siege.api.request(Method::POST, DEVICES).bearer_auth(siege.api.token("bob", ""));
            let request = request.header(USER_AGENT, HeaderValue::from_bytes(agent).unwrap());
            let answer = exchange(request.json(&json!({ "device_id": "tv", "device_type": "tv" }))).await;
            admitted.push(answer.expect(201));
        }
        // The second user agent counts as equal to the first, and evicts no session.
        assert_eq!(admitted[1]["evicted_session_ids"], json!([]));
        siege.api.user("bob").get(DEVICES).await.expect(200);
        let found = siege.api.admin().get(&format!("{SESSIONS}?user=bob&live=true")).await.expect(200);
        let recorded = found["items"][0]["user_agent"].as_str().unwrap_or_default();
        assert!(recorded.chars().count() <= USER_AGENT_CHARS_MAX, "{recorded}");
        assert!(!recorded.chars().any(char::is_control), "{recorded:?}");
        assert_eq!(text(&found["items"][0]["session_id"]), text(&admitted[1]["session_id"]));
    }
    siege.api.user("bob").delete(DEVICES).await.expect(204);
}
