//! A rolling upgrade under a steady storm, as described in `docs/operations.md`: nodes are replaced one by
//! one.
//!
//! `SEATKEEPER_OLDER` is the command of the previous version. The nodes begin with the previous version, and
//! two versions run side by side during the upgrade. Without the variable, every node runs the present
//! version.

use std::env;
use std::path::{Path, PathBuf};

use seatkeeper_testbed::redis::Redis;

use super::steady::{Manner, Steady, storm_permit};
use super::support::{Nodes, answered};
use crate::harness::BIN;
use crate::support::knobs;

const NODES: usize = 3;

/// The number of admissions that shows a healthy service.
const WELL: u64 = 30;

/// Longer than any node is away.
const TTL_SECONDS: u64 = 60;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_are_replaced_one_by_one_and_nobody_loses_a_seat() {
    let (_permit, redis) = (storm_permit().await, Redis::start());
    let older = env::var_os("SEATKEEPER_OLDER").map_or_else(|| PathBuf::from(BIN), PathBuf::from);
    let mut nodes = tokio::task::block_in_place(|| {
        let mut nodes = Nodes::over(&[]);
        for _ in 0..NODES {
            nodes.add_as(&older, &redis.url());
        }
        nodes
    });
    let manner = Manner { ttl_seconds: TTL_SECONDS, pinned: false, seed: knobs::seed() };
    let mut steady = Steady::begin(&nodes, manner).await;
    steady.goes_on(WELL).await;
    for node in &mut nodes.harnesses {
        let log = tokio::task::block_in_place(|| node.replace_by(Path::new(BIN)));
        assert!(!log.contains("stopped short"), "{log}");
        answered(async || node.client("probe").get("/readyz").await).await.expect(200);
        steady.goes_on(WELL).await;
        tokio::task::block_in_place(|| node.prove());
    }
    steady.end(nodes).await;
}
