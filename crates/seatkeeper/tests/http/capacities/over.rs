//! Every look-up shows an expired session as ended, even before the sweeper has recorded the expiry.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::place::{CapacityFixture, path_of, timeless};
use crate::http::exchange::assert_problem;
use crate::http::tenant_client::{SESSIONS, TenantClient, text};

const TTL: Duration = Duration::from_secs(2);

/// The request that looks at the expired session.
#[derive(Clone, Copy, Debug)]
enum ReadPath {
    Read,
    Find,
    Release,
    Put,
    Search,
    SearchForLive,
}

/// Starts a server with a short TTL of capacities, and without sweeps.
fn api() -> TenantClient {
    TenantClient::open_with(&[("CAPACITIES_TTL_SECONDS", "2"), ("REGISTRY_SWEEP_INTERVAL_MILLISECONDS", "0")])
}

#[tokio::test]
async fn no_look_up_returns_a_session_that_is_over_with_every_sweeper_off() {
    let api = api();
    let ann = api.service("ann");
    let mut places = Vec::new();
    for look in [
        ReadPath::Read,
        ReadPath::Find,
        ReadPath::Release,
        ReadPath::Put,
        ReadPath::Search,
        ReadPath::SearchForLive,
    ] {
        let place = CapacityFixture::new(&api);
        let session = place.put(&ann, 2).await.expect(201);
        places.push((look, place, session));
    }
    // By then, the newest session has expired as well.
    tokio::time::sleep(TTL + Duration::from_millis(20)).await;
    for (look, place, session) in &places {
        let id = &session["sessionId"];
        match look {
            ReadPath::Read => is_over(ann.get(&path_of(id)).await.expect(200), session),
            ReadPath::Find => assert!(place.found(&ann).await.is_empty()),
            ReadPath::Release => assert_problem(&ann.delete(&path_of(id)).await, 404, "over"),
            ReadPath::Put => {
                // Nothing is live on the capacity, so a lower tier starts a new session.
                let anew = place.put(&ann, 1).await.expect(201);
                assert_eq!((&anew["status"], &anew["sessionKind"]), (&json!("created"), &json!(1)));
                assert_ne!(anew["sessionId"], *id);
            }
            ReadPath::Search => {
                let path = format!("{SESSIONS}?pool_kind=capacity&pool={}", place.pool());
                let found = api.admin().get(&path).await.expect(200);
                assert_eq!(found["items"][0]["status"], "ended", "{found:#}");
            }
            ReadPath::SearchForLive => {
                let path = format!("{SESSIONS}?pool_kind=capacity&pool={}&live=true", place.pool());
                assert_eq!(api.admin().get(&path).await.expect(200)["items"], json!([]));
            }
        }
        is_over(ann.get(&path_of(id)).await.expect(200), session);
    }
}

/// Asserts that the session ended at the announced end, regardless of the time of the look-up.
#[track_caller]
fn is_over(read: Value, session: &Value) {
    assert_eq!((&read["isActive"], &read["endReason"]), (&json!(false), &json!("expired")));
    assert_eq!(read["sessionEndUtc"], session["sessionEndUtc"]);
}

#[tokio::test]
async fn a_session_lasts_from_its_start_on_whatever_is_asked_for_meanwhile() {
    let api = api();
    let (place, ann) = (CapacityFixture::new(&api), api.service("ann"));
    let created = place.put(&ann, 2).await.expect(201);
    let end: DateTime<Utc> = text(&created["sessionEndUtc"]).parse().unwrap();
    let mut stood = 0;
    let anew = loop {
        let answer = place.put(&ann, 2).await;
        if answer.status == 201 {
            break answer.body;
        }
        assert_eq!(answer.expect(200)["sessionEndUtc"], created["sessionEndUtc"]);
        stood += 1;
        tokio::time::sleep(TTL / 40).await;
    };
    assert!(stood > 0);
    assert_eq!(anew["status"], "created");
    let (_, [start, next_end]) = timeless(anew);
    assert!(start >= end && next_end - start == TimeDelta::from_std(TTL).unwrap(), "{end}, {start}");
}
