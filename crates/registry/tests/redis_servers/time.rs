//! Estimates of the time of buckets that share a server.

use std::time::Duration;

use seatkeeper_core::{Bucket, ESTIMATE_AHEAD_MAX, RegistryTime, Span};
use seatkeeper_registry::{Expiry as _, Rebuild as _};
use seatkeeper_testbed::redis::Redis;

use crate::node::Node;

/// The lag of the server's clock behind the time on record.
const LAG: Span = Span::from_secs(90);

const READINGS: usize = 50;

const PAUSE: Duration = Duration::from_millis(10);

/// At the rebuild of one bucket the time on record was ahead of the server's clock, so the time of that bucket alone is
/// ahead.
#[tokio::test]
async fn a_bucket_ahead_of_its_server_gives_no_other_bucket_its_time() {
    let redis = Redis::start();
    let node = Node::on(&redis).await;
    let [ahead, other] = [1, 2].map(|number| Bucket::new(number).expect("a bucket"));
    let now = node.registry.now_in(ahead).await.expect("a time");
    node.registry.rebuild_begin(ahead, 2).await.expect("nobody else rebuilds");
    node.registry.rebuild_clear(ahead, 2, now + LAG).await.expect("it has begun");
    for _ in 0..READINGS {
        for asked in [ahead, other] {
            node.registry.now_in(asked).await.expect("a time");
            for bucket in [ahead, other] {
                let estimate = node.registry.approximate_now_in(bucket).await.expect("an estimate");
                let exact = node.registry.now_in(bucket).await.expect("a time");
                is_close(estimate, exact);
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn is_close(estimate: RegistryTime, exact: RegistryTime) {
    assert!(estimate <= exact + ESTIMATE_AHEAD_MAX, "the estimate {estimate:?} is ahead of {exact:?}");
    assert!(exact.since(estimate) < LAG, "the estimate {estimate:?} is behind {exact:?}");
}
