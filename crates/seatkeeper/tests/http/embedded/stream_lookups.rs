//! A session that cannot be looked up at the beginning of a shared stream does not cost the other sessions their stream.

use serde_json::{Value, json};

use super::unknown_limits::tamper;
use crate::harness::{Client, EventStream};
use crate::http::tenant_client::{TenantClient, session_path};

async fn listen(client: &Client, first: &Value, other: &Value) -> EventStream {
    let path = format!("{}/events", session_path(first));
    EventStream::open_shared(client, &path, &[other]).await.expect("a stream")
}

/// Asserts that the next event is about the session.
async fn assert_told(stream: &mut EventStream, session: &Value) {
    let heard = stream.next().await.expect("an event");
    assert_eq!((heard.name.as_str(), &heard.data["session_id"]), ("released", session));
}

#[tokio::test]
async fn a_session_that_cannot_be_looked_up_is_looked_up_again() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 2 })).await;
    let live = api.seat(&license, "ann", "laptop").await;
    let ended = api.seat(&license, "ann", "desktop").await;
    let ann = api.user("ann");
    ann.release(&ended).await.expect(204);
    // The end is on record once a stream tells it.
    assert_told(&mut listen(&ann, &live, &ended).await, &ended).await;

    tamper(&api, "ALTER TABLE sessions RENAME TO sessions_hidden").await;
    let mut stream = listen(&ann, &live, &ended).await;
    tamper(&api, "ALTER TABLE sessions_hidden RENAME TO sessions").await;
    assert_told(&mut stream, &ended).await;
    ann.release(&live).await.expect(204);
    assert_told(&mut stream, &live).await;
    assert_eq!(stream.next().await, None, "nothing is left to tell");
}
