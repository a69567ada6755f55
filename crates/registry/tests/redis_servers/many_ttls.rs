//! A large pool whose TTL changed many times within one TTL.

use futures_util::future::join_all;
use seatkeeper_core::{EndReason, Origin, Seats, Span, Standing, Terms};
use seatkeeper_registry::{Journal as _, Pools as _};
use seatkeeper_testbed::redis::Redis;

use crate::node::Node;

/// TTLs in use, and sessions of each: together more than the 8,000 results that `unpack` returns.
const TTLS: u64 = 33;
const SESSIONS_PER_TTL: u64 = 250;

#[tokio::test]
async fn all_sessions_end_in_steps_and_each_end_is_an_event() {
    let redis = Redis::start();
    let node = Node::on(&redis).await;
    let pool = node.pool().await;
    for n in 0..TTLS {
        let terms = Terms {
            version: u64::MAX / 2 + n,
            limit: Seats(100_000),
            ttl: Span::from_secs(3_600 + n),
            ends_at: None,
            standing: Standing::Open,
        };
        node.registry.revise(&pool, terms, &Origin::SYSTEM).await.expect("newer terms");
        let holders = (0..SESSIONS_PER_TTL).map(|holder| format!("{n}-{holder}"));
        join_all(holders.map(async |holder| node.admit(&pool, &holder).await)).await;
    }

    let ended = node.registry.end_all(&pool, EndReason::Revoked, &Origin::SYSTEM).await.expect("it ends");

    let sessions = TTLS * SESSIONS_PER_TTL;
    assert_eq!(ended.count as u64, sessions);
    assert_eq!(node.registry.journal_depth() as u64, 2 * sessions);
}
