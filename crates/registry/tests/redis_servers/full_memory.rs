//! A Redis whose memory is full: admissions are refused, and whatever needs no more memory goes on.

use std::time::{Duration, Instant};

use seatkeeper_core::{PoolId, PoolKind, Seats, SessionId, Span, Standing, Terms};
use seatkeeper_registry::redis::Settings;
use seatkeeper_registry::{Admission as _, Ended, Error, Expiry as _, Heartbeat, Journal as _};
use seatkeeper_testbed::redis::Redis;

use crate::node::{Node, REACHED_MAX};

/// Seats of each pool: a small pool has at most eight sessions, a large pool more.
const SEATS: [usize; 2] = [3, 20];

/// More than the events of all admissions. An eighth is less than the events of the large pool.
const JOURNAL_EVENTS_MAX: usize = 120;

/// A TTL that is soon over, and longer than the time to fill a pool.
const SHORT: Span = Span::from_secs(3);

const LONG: Span = Span::from_secs(3_600);

const PAUSE: Duration = Duration::from_millis(50);

/// Opens a pool and takes every seat.
async fn filled(node: &Node, name: &str, seats: usize, ttl: Span) -> (PoolId, Vec<SessionId>) {
    let pool = PoolId::new(PoolKind::License, "acme".into(), format!("{name}-{seats}").as_str());
    // Later terms than those of a claim by `Node::admit`.
    let limit = Seats(seats as u32);
    let terms = Terms { version: u64::from(u32::MAX), limit, ttl, ends_at: None, standing: Standing::Open };
    node.registry.open(&pool, 0, Some(terms), Vec::new()).await.expect("it can be opened");
    let mut sessions = Vec::new();
    for number in 0..seats {
        sessions.push(node.admit(&pool, &format!("holder-{number}")).await);
    }
    (pool, sessions)
}

/// Sweeps until some session has ended.
async fn sweeps(node: &Node, pool: &PoolId) {
    let started = Instant::now();
    while node.registry.sweep(pool.bucket(), 10).await.expect("a sweep needs no memory").ended == 0 {
        assert!(started.elapsed() < REACHED_MAX, "the silent sessions live on");
        tokio::time::sleep(PAUSE).await;
    }
}

/// Reads the whole journal of a pool's bucket and acknowledges the events, which trims the journal.
async fn acknowledges(node: &Node, pool: &PoolId) {
    let end = node.registry.journal_end(pool.bucket()).await.expect("it is reached");
    let read = node.registry.journal_read(usize::MAX).await.expect("a read needs no memory").entries;
    let last = read.iter().map(|entry| entry.receipt).rfind(|receipt| receipt.bucket == end.bucket);
    assert_eq!(last, Some(end), "the events wait to be read");
    node.registry.journal_acknowledge(end).await.expect("an acknowledgement needs no memory");
}

#[tokio::test]
async fn heartbeats_releases_sweeps_and_acknowledgements_go_on() {
    let redis = Redis::start();
    // An acknowledgement of an eighth of the journal's bound is sent at once.
    let settings = Settings { journal_events_max: JOURNAL_EVENTS_MAX, ..Settings::default() };
    let node = Node::with(redis.url().parse().expect("a URL"), settings).await;
    let mut pools = Vec::new();
    for seats in SEATS {
        let (pool, sessions) = filled(&node, "pool", seats, LONG).await;
        let (silent, _) = filled(&node, "silent", seats, SHORT).await;
        pools.push((pool, sessions, silent));
    }
    let other = node.beside(redis.url().parse().expect("a URL"), Settings::default());
    redis.ask::<()>(redis::cmd("CONFIG").arg("SET").arg("maxmemory").arg(1).take());

    for (pool, sessions, silent) in &pools {
        let refused = node.claim(pool, "newcomer").await;
        assert!(
            matches!(&refused, Err(Error::Unavailable(why)) if why.to_string().contains("OOM")),
            "{refused:?}"
        );
        for session in sessions {
            for node in [&node, &other] {
                let renewed = node.renew(*session).await.expect("a heartbeat needs no memory");
                assert!(matches!(renewed, Heartbeat::Renewed(_)), "{renewed:?}");
            }
        }
        sweeps(&node, silent).await;
        for session in sessions {
            let ended = node.end(*session).await.expect("a release needs no memory");
            assert!(matches!(ended, Ended::Now { .. }), "{ended:?}");
        }
        acknowledges(&node, pool).await;
    }

    redis.ask::<()>(redis::cmd("CONFIG").arg("SET").arg("maxmemory").arg(0).take());
    for (pool, ..) in &pools {
        node.admit(pool, "newcomer").await;
    }
}
