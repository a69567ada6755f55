//! Wrong clocks of Redis, and of the hosts of a deployment with Redis.

use super::{ALL, DOUBTED, FALLBACK_DEVICES, FALLBACK_LICENSES, NOTHING, REBUILD, SET_CLOCK, SETTLES};
use crate::failover::catalogue::Fault;

pub(super) const FAULTS: &[Fault] = &[
    Fault {
        title: "the clock of Redis is 400 s ahead",
        test: "the_clock_is_stepped_forward",
        effects: [REBUILD, REBUILD, NOTHING],
        epochs_max: 2,
        heals: ALL,
        remedy: SET_CLOCK,
    },
    Fault {
        title: "… 400 s behind",
        test: "the_clock_is_stepped_back",
        effects: [NOTHING, NOTHING, NOTHING],
        epochs_max: 0,
        heals: "all but the seats of silent holders, which are free 400 s later",
        remedy: SET_CLOCK,
    },
    Fault {
        title: "… ten minutes behind, then right again",
        test: "the_clock_is_stepped_back_and_forward_again",
        effects: [SETTLES, SETTLES, NOTHING],
        epochs_max: 2,
        heals: ALL,
        remedy: SET_CLOCK,
    },
    Fault {
        title: "… a decade ahead, for a second",
        test: "the_clock_shows_another_decade_for_a_second",
        effects: [DOUBTED, DOUBTED, NOTHING],
        epochs_max: 2,
        heals: ALL,
        remedy: SET_CLOCK,
    },
    Fault {
        title: "… a decade ahead, for longer",
        test: "the_clock_shows_another_decade_for_an_outage",
        effects: [FALLBACK_LICENSES, FALLBACK_DEVICES, NOTHING],
        epochs_max: 2,
        heals: ALL,
        remedy: SET_CLOCK,
    },
    Fault {
        title: "the clock of PostgreSQL's host is 400 s ahead",
        test: "the_clock_of_postgresql_beside_redis_is_stepped_forward",
        effects: [NOTHING, NOTHING, NOTHING],
        epochs_max: 0,
        heals: ALL,
        remedy: SET_CLOCK,
    },
    Fault {
        title: "… 400 s behind",
        test: "the_clock_of_postgresql_beside_redis_is_stepped_back",
        effects: [NOTHING, NOTHING, NOTHING],
        epochs_max: 0,
        heals: ALL,
        remedy: SET_CLOCK,
    },
    Fault {
        title: "… a decade ahead",
        test: "the_clock_of_postgresql_beside_redis_shows_another_decade",
        effects: [NOTHING, NOTHING, NOTHING],
        epochs_max: 0,
        heals: ALL,
        remedy: SET_CLOCK,
    },
    Fault {
        title: "the clock of a node's host is 400 s ahead, then behind",
        test: "the_clock_of_a_node_over_redis_is_stepped",
        effects: [NOTHING, NOTHING, NOTHING],
        epochs_max: 0,
        heals: ALL,
        remedy: SET_CLOCK,
    },
    Fault {
        title: "… a decade ahead",
        test: "the_clock_of_a_node_over_redis_shows_another_decade",
        effects: [NOTHING, NOTHING, NOTHING],
        epochs_max: 0,
        heals: "all; meanwhile the node refuses every token (401)",
        remedy: SET_CLOCK,
    },
];
