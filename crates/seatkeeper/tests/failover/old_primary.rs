//! Nodes are led back to an old primary of Redis, which ran on while the nodes used a new primary.

use std::time::Duration;

use seatkeeper_ledger::buckets::BucketMode;
use seatkeeper_testbed::proxy::Proxy;
use seatkeeper_testbed::redis::Redis;

use super::scene_again::{judged, played};
use super::steady::storm_permit;
use super::support::{Nodes, epochs_per_bucket, renewed, seat};
use crate::support::books::opened;
use crate::until::within;

/// Time limit for nodes to find a new or a dead Redis, on a busy machine.
const FOUND_MAX: Duration = Duration::from_secs(60);

const PAUSE: Duration = Duration::from_millis(100);

/// A fault may cost two epochs: the fallback, and the way back.
const EPOCHS_MAX: u64 = 2;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_way_back_to_an_old_primary_costs_one_epoch() {
    let _permit = storm_permit().await;
    played(the_successor_dies).await;
}

/// Returns `false` if a node stood still.
async fn the_successor_dies() -> bool {
    let (old, mut new) = tokio::task::block_in_place(|| (Redis::start(), Redis::start()));
    let to_redis = Proxy::start(([127, 0, 0, 1], old.port()).into(), 0).await;
    let way = format!("redis://{}", to_redis.address());
    let nodes = tokio::task::block_in_place(|| Nodes::over(&[way.clone(), way]));
    let client = &nodes.clients()[0];
    let ann = seat(client, &nodes.harnesses[0].license(1).await, "ann").await;

    let before = epochs_per_bucket(&nodes).await;
    to_redis.redirect(([127, 0, 0, 1], new.port()).into());
    within(FOUND_MAX, "every bucket is in a new epoch", async || {
        tokio::time::sleep(PAUSE).await;
        let after = epochs_per_bucket(&nodes).await;
        let left = after.iter().zip(&before).filter(|(after, before)| after <= before).count();
        if left == 0 { Ok(()) } else { Err(format!("{left} buckets are not")) }
    })
    .await;
    nodes.redis_serves_again().await;
    renewed(client, &ann).await;

    let before = epochs_per_bucket(&nodes).await;
    tokio::task::block_in_place(|| new.kill());
    let ledger = opened(nodes.ledger()).await;
    within(FOUND_MAX, "every bucket is in a fallback", async || {
        tokio::time::sleep(PAUSE).await;
        let rows = ledger.buckets().await.map_err(|error| error.to_string())?;
        let left = rows.iter().filter(|row| row.mode == BucketMode::Registry).count();
        if left == 0 { Ok(()) } else { Err(format!("{left} buckets are not")) }
    })
    .await;
    to_redis.redirect(([127, 0, 0, 1], old.port()).into());
    nodes.redis_serves_again().await;
    renewed(client, &ann).await;

    let raised = nodes.raised(&before).await;
    println!("{raised} epochs");
    let verdict =
        if raised <= EPOCHS_MAX { Ok(()) } else { Err(format!("a bucket was raised {raised} times")) };
    judged(nodes, verdict)
}
