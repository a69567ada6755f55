//! Heartbeats with invented session ids: each id costs at most one search of the ledger, and a quota bounds the searches
//! of one caller on every registry.

use std::time::{Duration, Instant};

use seatkeeper_core::{Bucket, Region, RegistryTime, SessionId};
use seatkeeper_testbed::postgres::Postgres;
use seatkeeper_testbed::redis::Redis;
use serde_json::{Value, json};

use super::support::{Nodes, answered, renewed, seat};
use crate::harness::{Client, Harness};

/// The number of ids invented by a caller.
const INVENTED: u64 = 20;

/// The burst of a caller's limit, for acquires and for heartbeats of unknown sessions alike.
const BURST: usize = 3;
/// Settings with an acquire limit of [`BURST`] a minute.
const SETTINGS: &[(&str, &str)] = &[("LIMITS_LICENSES_ACQUIRES_PER_MINUTE", "3")];

/// The time after which the limit admits a further request.
const INTERVAL: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_caller_who_invents_ids_is_limited_and_until_then_causes_one_query_each() {
    let postgres = Postgres::start_with(&["fsync = off", "log_statement = 'all'"]);
    let redis = Redis::start();
    let mut nodes = Nodes::on_with(postgres.url(&postgres.add_database()), SETTINGS);
    nodes.add(&redis.url());
    let harness = &nodes.harnesses[0];
    let license = harness.license(5).await;
    let (eve, bob) = (harness.client("eve"), harness.client("bob"));
    let held = seat(&eve, &license, "eve's").await;
    let bobs = seat(&bob, &license, "bob's").await;

    let unknown = invent(&eve).await;

    // Known sessions of the limited caller go on, and other callers are not limited.
    renewed(&eve, &held).await;
    renewed(&bob, &bobs).await;
    bob.heartbeat(&invented(INVENTED)).await.expect(404);

    let log = postgres.log();
    let queries = |number| {
        let id = invented(number);
        log.matches(id.as_str().expect("a text")).count()
    };
    let each: Vec<_> = (0..=INVENTED).map(queries).collect();
    assert!(each.iter().all(|queries| *queries <= 1), "queries of each id: {each:?}");
    assert_eq!(each.iter().sum::<usize>(), unknown + 1, "each 404 took one query, each 429 none: {each:?}");
    drop(nodes.close());
}

#[tokio::test]
async fn a_caller_who_invents_ids_is_limited_over_postgresql_alone() {
    let postgres = Postgres::start_with(&["fsync = off", "log_statement = 'all'"]);
    let ledger = postgres.url(&postgres.add_database());
    let mut nodes = Nodes::on_with(ledger.clone(), SETTINGS);
    nodes.add(&ledger);
    let unknown = invent_beside_a_session(&nodes.harnesses[0]).await;

    let log = postgres.log();
    let lines = |number| {
        let id = invented(number);
        log.lines().filter(|line| line.contains(id.as_str().expect("a text"))).count()
    };
    let each: Vec<_> = (0..INVENTED).map(lines).collect();
    let own = each.iter().min().expect("ids");
    let searched = each.iter().filter(|lines| *lines > own).count();
    assert_eq!(searched, unknown, "an id past the limit costs the heartbeat's own statement alone: {each:?}");
    drop(nodes.close());
}

#[tokio::test]
async fn a_caller_who_invents_ids_is_limited_on_an_embedded_node() {
    let harness = Harness::open_with(SETTINGS);
    invent_beside_a_session(&harness).await;
}

/// Lets a caller who holds a seat invent ids. Returns how many were looked for.
async fn invent_beside_a_session(harness: &Harness) -> usize {
    let license = harness.license(5).await;
    let eve = harness.client("eve");
    let held = seat(&eve, &license, "eve's").await;
    let unknown = invent(&eve).await;
    renewed(&eve, &held).await;
    harness.client("bob").heartbeat(&invented(INVENTED)).await.expect(404);
    unknown
}

/// Sends a heartbeat for each invented id, and returns how many were looked for. Fails unless the caller is limited.
async fn invent(caller: &Client) -> usize {
    let began = Instant::now();
    let mut unknown = 0;
    for number in 0..INVENTED {
        let answer = answered(async || caller.heartbeat(&invented(number)).await).await;
        if answer.status == 429 {
            let wait = answer.headers["retry-after"].to_str().expect("a text");
            assert!(wait.parse::<u64>().expect("seconds") >= 1, "{answer:?}");
        } else {
            answer.expect(404);
            unknown += 1;
        }
    }
    let refilled = usize::try_from(began.elapsed().as_millis() / INTERVAL.as_millis()).expect("few");
    assert!((BURST..=BURST + refilled).contains(&unknown), "{unknown} were looked for");
    assert!(unknown < INVENTED as usize, "the machine is too slow for the limit to show");
    unknown
}

/// Returns an id that was never issued. Every invented id is in bucket 7.
fn invented(number: u64) -> Value {
    let bucket = Bucket::new(7).expect("a bucket");
    let id = SessionId::mint(RegistryTime::from_millis(1_700_000_000_000), bucket, Region::default(), number);
    json!(id.as_uuid())
}
