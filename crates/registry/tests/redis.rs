//! Conformance of the Redis backend.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod redis_harness;
mod redis_masters;

use redis_harness::Nodes;
use redis_masters::Masters;
use seatkeeper_registry::{conformance_suite, rebuilding_suite, record_suite};

conformance_suite!(one_node, Nodes<1>);
conformance_suite!(two_nodes, Nodes<2>);
rebuilding_suite!(rebuilt, Nodes<2>);
record_suite!(record, Nodes<1>);
conformance_suite!(on_a_cluster, Nodes<2, Masters>);
rebuilding_suite!(rebuilt_on_a_cluster, Nodes<2, Masters>);
