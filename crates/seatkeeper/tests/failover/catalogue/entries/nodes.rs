//! Faults of a node.

use super::{ALL, DOWN, NOTHING, NOTHING_TO_DO, ONE_NODE};
use crate::failover::catalogue::Fault;

pub(super) const FAULTS: &[Fault] = &[
    Fault {
        title: "a node is killed (`kill -9`)",
        test: "a_node_is_killed_and_started_again",
        effects: [NOTHING, NOTHING, NOTHING],
        epochs_max: 0,
        heals: "all once the node is started again; the other nodes go on",
        remedy: "start another",
    },
    Fault {
        title: "a node freezes",
        test: "a_node_is_frozen_and_wakes",
        effects: [ONE_NODE, ONE_NODE, ONE_NODE],
        epochs_max: 2,
        heals: ALL,
        remedy: NOTHING_TO_DO,
    },
    Fault {
        title: "an embedded server freezes: a paused container, a suspended host",
        test: "an_embedded_server_is_frozen_and_wakes",
        effects: [DOWN, DOWN, DOWN],
        epochs_max: 0,
        heals: ALL,
        remedy: NOTHING_TO_DO,
    },
];
