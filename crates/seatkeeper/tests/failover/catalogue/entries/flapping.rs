//! A party that comes and goes.

use super::{
    ALL, FALLBACK_DEVICES, FALLBACK_LICENSES, FLAPPING_DEVICES, FLAPPING_LICENSES, LOOK_AT_NETWORK, NOTHING,
    ONE_NODE, SLOW,
};
use crate::failover::catalogue::Fault;

/// The absences of a Redis that comes and goes during one outage. Each is a fault by itself: an absence during the
/// rebuild of a return may cost an epoch although the bucket stays in Redis.
const REDIS_ABSENCES: u64 = 3;

pub(super) const FAULTS: &[Fault] = &[
    Fault {
        title: "Redis stutters: away for 1.5 s of 2 s",
        test: "redis_stutters",
        effects: [FALLBACK_LICENSES, FALLBACK_DEVICES, NOTHING],
        epochs_max: 2,
        heals: ALL,
        remedy: "look at the load of its host",
    },
    Fault {
        title: "Redis comes and goes, 7 s away and 4 s back: each absence is a fault",
        test: "redis_comes_and_goes",
        effects: [FLAPPING_LICENSES, FLAPPING_DEVICES, NOTHING],
        epochs_max: 2 * REDIS_ABSENCES,
        heals: ALL,
        remedy: "look at its log",
    },
    Fault {
        title: "PostgreSQL stutters: away for 1.5 s of 2 s",
        test: "postgres_stutters",
        effects: [SLOW, SLOW, SLOW],
        epochs_max: 2,
        heals: ALL,
        remedy: "look at the load of its host",
    },
    Fault {
        title: "PostgreSQL comes and goes every 5 s",
        test: "postgres_comes_and_goes",
        effects: [SLOW, SLOW, SLOW],
        epochs_max: 2,
        heals: ALL,
        remedy: "look at its log",
    },
    Fault {
        title: "the way to Redis comes and goes for all nodes: each absence is a fault",
        test: "the_way_to_redis_comes_and_goes_for_all_nodes",
        effects: [FLAPPING_LICENSES, FLAPPING_DEVICES, NOTHING],
        epochs_max: 2 * REDIS_ABSENCES,
        heals: ALL,
        remedy: LOOK_AT_NETWORK,
    },
    Fault {
        title: "each node in turn loses Redis",
        test: "each_node_in_turn_loses_redis",
        effects: [ONE_NODE, ONE_NODE, NOTHING],
        epochs_max: 0,
        heals: ALL,
        remedy: LOOK_AT_NETWORK,
    },
    Fault {
        title: "each node in turn loses PostgreSQL",
        test: "each_node_in_turn_loses_postgres",
        effects: [ONE_NODE, ONE_NODE, ONE_NODE],
        epochs_max: 0,
        heals: ALL,
        remedy: LOOK_AT_NETWORK,
    },
    Fault {
        title: "a node stutters: away for 1.5 s of 2 s",
        test: "a_node_stutters",
        effects: [ONE_NODE, ONE_NODE, ONE_NODE],
        epochs_max: 0,
        heals: ALL,
        remedy: "look at the load of its host",
    },
];
