//! A frozen Redis: a probe of the buckets waits for the server once.

use std::time::{Duration, Instant};

use seatkeeper_registry::redis::Settings;
use seatkeeper_registry::{Rebuild as _, State};
use seatkeeper_testbed::redis::Redis;

use crate::node::Node;

/// Shorter than the second for which a survey waits for a server.
const AT_ONCE: Duration = Duration::from_millis(700);

#[tokio::test]
async fn the_renewal_of_leases_waits_for_no_server_that_the_survey_has_waited_for() {
    let redis = Redis::start();
    let settings = Settings { lease: Some(Duration::from_secs(10)), ..Settings::default() };
    let node = Node::with(redis.url().parse().expect("a URL"), settings).await;
    redis.pause();
    let conditions = node.registry.conditions().await;
    assert!(conditions.iter().all(|condition| condition.state == State::Unreachable), "{conditions:?}");
    let surveyed = Instant::now();
    node.registry.renew_leases().await.expect("a server out of reach has no lease to renew");
    let waited = surveyed.elapsed();
    assert!(waited < AT_ONCE, "the renewal took {waited:?}");
    redis.resume();
}
