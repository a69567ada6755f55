//! Partitions of three nodes, Redis and PostgreSQL.

use super::{
    ALL, DOWN, FALLBACK_DEVICES, FALLBACK_LICENSES, LATE_FALLBACK_DEVICES, LATE_FALLBACK_LICENSES,
    LOOK_AT_NETWORK, NOTHING, ONE_NODE, TWO_NODES, WITHOUT_LEDGER,
};
use crate::failover::catalogue::Fault;

pub(super) const FAULTS: &[Fault] = &[
    Fault {
        title: "one node with Redis, two with PostgreSQL",
        test: "one_node_alone_with_redis",
        effects: [FALLBACK_LICENSES, FALLBACK_DEVICES, ONE_NODE],
        epochs_max: 2,
        heals: ALL,
        remedy: LOOK_AT_NETWORK,
    },
    Fault {
        title: "… while a node restarts, and another starts",
        test: "nodes_start_while_one_node_is_alone_with_redis",
        effects: [LATE_FALLBACK_LICENSES, LATE_FALLBACK_DEVICES, TWO_NODES],
        epochs_max: 2,
        heals: ALL,
        remedy: LOOK_AT_NETWORK,
    },
    Fault {
        title: "one node with PostgreSQL, two with Redis",
        test: "one_node_alone_with_postgres",
        effects: [FALLBACK_LICENSES, FALLBACK_DEVICES, ONE_NODE],
        epochs_max: 2,
        heals: ALL,
        remedy: LOOK_AT_NETWORK,
    },
    Fault {
        title: "all nodes without Redis",
        test: "all_nodes_without_redis",
        effects: [FALLBACK_LICENSES, FALLBACK_DEVICES, NOTHING],
        epochs_max: 2,
        heals: ALL,
        remedy: "bring Redis back",
    },
    Fault {
        title: "all nodes without PostgreSQL",
        test: "all_nodes_without_postgres",
        effects: [WITHOUT_LEDGER, WITHOUT_LEDGER, DOWN],
        epochs_max: 2,
        heals: ALL,
        remedy: "bring PostgreSQL back",
    },
    Fault {
        title: "one node without either",
        test: "one_node_without_anything",
        effects: [ONE_NODE, ONE_NODE, ONE_NODE],
        epochs_max: 2,
        heals: ALL,
        remedy: LOOK_AT_NETWORK,
    },
    Fault {
        title: "… while a node restarts, and another starts",
        test: "nodes_start_while_one_node_is_without_anything",
        effects: [TWO_NODES, TWO_NODES, TWO_NODES],
        epochs_max: 2,
        heals: ALL,
        remedy: LOOK_AT_NETWORK,
    },
    Fault {
        title: "two nodes without either",
        test: "two_nodes_without_anything",
        effects: [ONE_NODE, ONE_NODE, TWO_NODES],
        epochs_max: 2,
        heals: ALL,
        remedy: LOOK_AT_NETWORK,
    },
    Fault {
        title: "all nodes without either",
        test: "all_nodes_without_anything",
        effects: [DOWN, DOWN, DOWN],
        epochs_max: 2,
        heals: ALL,
        remedy: "bring PostgreSQL back first",
    },
    Fault {
        title: "… for longer than a session lasts",
        test: "all_nodes_are_cut_off_from_both_stores_for_longer_than_a_session_lasts",
        effects: [DOWN, DOWN, DOWN],
        epochs_max: 2,
        heals: ALL,
        remedy: "bring PostgreSQL back first",
    },
];
