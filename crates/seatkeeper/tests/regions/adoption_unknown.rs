//! A subscriber whom the successor of a lost region does not know: the anchor alone has the home in the lost region on record.

use reqwest::Method;
use serde_json::json;

use crate::adoption::{TTL_SECONDS, play};
use crate::world::{AP, EU, US};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_home_that_the_successor_learns_from_the_anchor_admits_nobody_before_the_adoption() {
    let mut world = crate::adoption::world().await;
    play(&world, US, "ann", "tv").await.expect(201);
    world.back_up(US).await;
    world.lose(US).await;
    let begin = json!({ "successor": 3, "ttl_milliseconds": TTL_SECONDS * 1_000, "only_check": false });
    for region in [AP, EU] {
        let token = world.region_token(US, region, "192.0.2.1");
        let path = "/api/v1/regions/adoptions/begin";
        world.send_with(region, "ann", &token, Method::POST, path, begin.clone()).await.expect(200);
    }
    // The television may still play by the lost region, on no record.
    for region in [AP, EU] {
        let refused = play(&world, region, "ann", "phone").await.expect(503);
        assert_eq!(refused["type"], "/problems/region-adopting", "{refused:#}");
    }
    world.close().await;
}
