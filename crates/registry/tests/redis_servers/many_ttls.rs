//! A large pool whose TTL changed many times within one TTL.

use futures_util::future::join_all;
use seatkeeper_core::{EndReason, Origin, Seats, Span, Standing, Terms};
use seatkeeper_registry::{Heartbeat, Journal as _, Pools as _};
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
        node.registry.revise(&pool, terms_of_ttl(n), &Origin::SYSTEM).await.expect("newer terms");
        let holders = (0..SESSIONS_PER_TTL).map(|holder| format!("{n}-{holder}"));
        join_all(holders.map(async |holder| node.admit(&pool, &holder).await)).await;
    }

    let ended = node.registry.end_all(&pool, EndReason::Revoked, &Origin::SYSTEM).await.expect("it ends");

    let sessions = TTLS * SESSIONS_PER_TTL;
    assert_eq!(ended.count as u64, sessions);
    assert_eq!(node.registry.journal_depth() as u64, 2 * sessions);
}

/// A pool with several TTLs in use costs each heartbeat, denial and view more commands.
#[tokio::test]
async fn a_pool_has_one_ttl_in_use_again_once_all_sessions_are_renewed() {
    let redis = Redis::start();
    let node = Node::on(&redis).await;
    let pool = node.pool_of("photo", 100).await;
    let mut sessions = Vec::new();
    let first = terms_of_ttl(1);
    node.registry.revise(&pool, first, &Origin::SYSTEM).await.expect("newer terms");
    for holder in 0..20 {
        sessions.push(node.admit(&pool, &holder.to_string()).await);
    }
    let keys: Vec<String> = redis.ask(redis::cmd("KEYS").arg("sk:*:p*").take());
    let [key] = &keys[..] else { panic!("one pool: {keys:?}") };
    let bytes = || redis.ask::<u64>(redis::cmd("STRLEN").arg(key).take());
    let bytes_of_one_ttl = bytes();

    for changes in 2..5 {
        let changed = terms_of_ttl(changes);
        node.registry.revise(&pool, changed, &Origin::SYSTEM).await.expect("newer terms");
        let (some, others) = sessions.split_at(10);
        for id in some {
            node.renew(*id).await.expect("an answer");
        }
        assert!(bytes() > bytes_of_one_ttl, "two TTLs are in use");
        // The others take the TTL, and then each session the place of the TTL that came out of use.
        for id in others.iter().chain(&sessions) {
            let renewed = node.renew(*id).await.expect("an answer");
            let Heartbeat::Renewed(live) = renewed else { panic!("not renewed: {renewed:?}") };
            assert_eq!(live.ttl, changed.ttl);
        }
        assert_eq!(bytes(), bytes_of_one_ttl, "one TTL is in use");
    }
    let ended = node.registry.end_all(&pool, EndReason::Revoked, &Origin::SYSTEM).await.expect("it ends");
    assert_eq!(ended.count, sessions.len());
}

/// Returns the terms of a number of changes of the TTL.
fn terms_of_ttl(changes: u64) -> Terms {
    Terms {
        version: u64::MAX / 2 + changes,
        limit: Seats(100_000),
        ttl: Span::from_secs(3_600 + changes),
        ends_at: None,
        standing: Standing::Open,
    }
}
