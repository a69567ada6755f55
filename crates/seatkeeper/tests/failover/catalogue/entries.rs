//! The entries of the catalogue, in the order of the table.

use super::Lapse::{Nothing, UpTo, WhileItLasts};
use super::{Effect, Fault};

const NOTHING: Effect = Effect { admissions: Nothing, heartbeats: Nothing, afterwards: 1 };

/// The effect of a rebuild of buckets.
const REBUILD: Effect = Effect { admissions: UpTo(5), heartbeats: UpTo(5), afterwards: 5 };

/// The effect of a fallback on licenses: the ledger's database serves licenses in place of Redis, and hands
/// them back.
const FALLBACK_LICENSES: Effect = Effect { admissions: UpTo(6), heartbeats: UpTo(6), afterwards: 5 };

/// The effect of a fallback on devices: no store admits devices in place of Redis, but live sessions go on.
const FALLBACK_DEVICES: Effect = Effect { admissions: WhileItLasts, heartbeats: UpTo(6), afterwards: 5 };

/// The effects of a fallback decided by nodes that have just started: their circuit breakers start closed.
const LATE_FALLBACK_LICENSES: Effect = Effect { admissions: UpTo(12), heartbeats: UpTo(12), afterwards: 5 };

const LATE_FALLBACK_DEVICES: Effect =
    Effect { admissions: WhileItLasts, heartbeats: UpTo(12), afterwards: 5 };

/// The effect of a ledger that cannot commit.
const WITHOUT_LEDGER: Effect = Effect { admissions: WhileItLasts, heartbeats: Nothing, afterwards: 5 };

/// The effect of one broken node: the other nodes serve, and a client may wait for a timeout at the broken
/// node.
const ONE_NODE: Effect = Effect { admissions: UpTo(8), heartbeats: UpTo(5), afterwards: 2 };

/// The effect of two broken nodes: a client may wait for a timeout at each.
const TWO_NODES: Effect = Effect { admissions: UpTo(11), heartbeats: UpTo(8), afterwards: 2 };

/// The effect of a slow network: requests are late, and some time out.
const SLOW: Effect = Effect { admissions: UpTo(6), heartbeats: UpTo(5), afterwards: 2 };

/// The effect of a promoted PostgreSQL standby: the fault ends with the promotion, and a rebuild follows.
const PROMOTED_LEDGER: Effect = Effect { admissions: UpTo(2), heartbeats: UpTo(2), afterwards: 5 };

/// The effect of a clock that is doubted for a second, and then right again.
const DOUBTED: Effect = Effect { admissions: UpTo(2), heartbeats: UpTo(2), afterwards: 3 };

/// The effect of a clock that was behind and is right again: a jump forward, which has to settle before a rebuild.
const SETTLES: Effect = Effect { admissions: Nothing, heartbeats: Nothing, afterwards: 6 };

/// The effect of a bad network to the only store: some requests are answered in time, and the rest once the network
/// is well.
const HARDLY_SERVED: Effect = Effect { admissions: UpTo(30), heartbeats: UpTo(30), afterwards: 5 };

const DOWN: Effect = Effect { admissions: WhileItLasts, heartbeats: WhileItLasts, afterwards: 5 };

const ALL: &str = "all";

const NOTHING_TO_DO: &str = "nothing";

const LOOK_AT_NETWORK: &str = "look at the network";

const SET_CLOCK: &str = "set the clock of the host right";

pub(super) const FAULTS: &[Fault] = &[
    Fault {
        title: "Redis is killed and comes back empty",
        test: "redis_is_killed_and_comes_back_empty",
        effects: [REBUILD, REBUILD, NOTHING],
        epochs_max: 2,
        heals: ALL,
        remedy: NOTHING_TO_DO,
    },
    Fault {
        title: "… with an old snapshot",
        test: "redis_is_killed_and_comes_back_as_it_was_a_while_ago",
        effects: [REBUILD, REBUILD, NOTHING],
        epochs_max: 2,
        heals: ALL,
        remedy: NOTHING_TO_DO,
    },
    Fault {
        title: "Redis is frozen (`SIGSTOP`)",
        test: "redis_is_frozen_and_wakes",
        effects: [FALLBACK_LICENSES, FALLBACK_DEVICES, NOTHING],
        epochs_max: 2,
        heals: ALL,
        remedy: "bring Redis back",
    },
    Fault {
        title: "a replica that lags is promoted",
        test: "a_replica_that_lags_is_promoted",
        effects: [REBUILD, REBUILD, NOTHING],
        epochs_max: 2,
        heals: ALL,
        remedy: NOTHING_TO_DO,
    },
    Fault {
        title: "an old primary lives on",
        test: "an_old_primary_lives_on_with_clients_on_both",
        effects: [REBUILD, REBUILD, NOTHING],
        epochs_max: 2,
        heals: ALL,
        remedy: "stop the old primary",
    },
    Fault {
        title: "a primary is demoted at its address",
        test: "a_primary_is_demoted_where_it_is_and_promoted_again",
        effects: [FALLBACK_LICENSES, FALLBACK_DEVICES, NOTHING],
        epochs_max: 2,
        heals: ALL,
        remedy: "lead the nodes to the primary",
    },
    Fault {
        title: "… and promoted at once, with another's memory",
        test: "a_primary_has_the_memory_of_a_replica_that_lagged",
        effects: [REBUILD, REBUILD, NOTHING],
        epochs_max: 2,
        heals: ALL,
        remedy: NOTHING_TO_DO,
    },
    Fault {
        title: "a replica comes and goes",
        test: "a_replica_comes_and_goes_and_no_bucket_is_rebuilt",
        effects: [NOTHING, NOTHING, NOTHING],
        epochs_max: 0,
        heals: ALL,
        remedy: NOTHING_TO_DO,
    },
    Fault {
        title: "a Sentinel promotes a replica",
        test: "a_sentinel_promotes_a_replica",
        effects: [REBUILD, REBUILD, NOTHING],
        epochs_max: 2,
        heals: ALL,
        remedy: NOTHING_TO_DO,
    },
    Fault {
        title: "a Sentinel is frozen (`SIGSTOP`)",
        test: "a_sentinel_is_frozen_and_wakes",
        effects: [NOTHING, NOTHING, NOTHING],
        epochs_max: 0,
        heals: ALL,
        remedy: "start another",
    },
    Fault {
        title: "a Cluster promotes a replica",
        test: "a_cluster_promotes_a_replica",
        effects: [FALLBACK_LICENSES, FALLBACK_DEVICES, NOTHING],
        epochs_max: 2,
        heals: ALL,
        remedy: NOTHING_TO_DO,
    },
    Fault {
        title: "a master of a Cluster is frozen (`SIGSTOP`)",
        test: "a_master_of_a_cluster_is_frozen_and_wakes",
        effects: [FALLBACK_LICENSES, FALLBACK_DEVICES, NOTHING],
        epochs_max: 2,
        heals: ALL,
        remedy: NOTHING_TO_DO,
    },
    Fault {
        title: "a Cluster moves its slots",
        test: "a_cluster_moves_its_slots",
        effects: [REBUILD, REBUILD, NOTHING],
        epochs_max: 2,
        heals: ALL,
        remedy: "move few slots at a time",
    },
    Fault {
        title: "too few replicas to write to",
        test: "too_few_replicas_are_there_to_write_to",
        effects: [FALLBACK_LICENSES, FALLBACK_DEVICES, NOTHING],
        epochs_max: 2,
        heals: ALL,
        remedy: "start the replicas",
    },
    Fault {
        title: "memory is full",
        test: "the_memory_is_full",
        effects: [FALLBACK_LICENSES, FALLBACK_DEVICES, NOTHING],
        epochs_max: 2,
        heals: ALL,
        remedy: "more memory, or shorter TTLs",
    },
    Fault {
        title: "a snapshot fails (`MISCONF`)",
        test: "a_snapshot_fails",
        effects: [FALLBACK_LICENSES, FALLBACK_DEVICES, NOTHING],
        epochs_max: 2,
        heals: ALL,
        remedy: "make room for snapshots",
    },
    Fault {
        title: "Redis loads a large dump (`LOADING`)",
        test: "redis_loads_its_data",
        effects: [FALLBACK_LICENSES, FALLBACK_DEVICES, NOTHING],
        epochs_max: 2,
        heals: ALL,
        remedy: NOTHING_TO_DO,
    },
    Fault {
        title: "the disk of Redis is full (append-only file)",
        test: "the_disk_of_redis_is_full",
        effects: [FALLBACK_LICENSES, FALLBACK_DEVICES, NOTHING],
        epochs_max: 2,
        heals: ALL,
        remedy: "make room",
    },
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
        title: "one node is cut off from Redis",
        test: "one_node_is_cut_off_from_redis",
        effects: [ONE_NODE, ONE_NODE, NOTHING],
        epochs_max: 2,
        heals: ALL,
        remedy: LOOK_AT_NETWORK,
    },
    Fault {
        title: "… hears nothing of Redis",
        test: "one_node_hears_nothing_of_redis",
        effects: [ONE_NODE, ONE_NODE, NOTHING],
        epochs_max: 2,
        heals: ALL,
        remedy: LOOK_AT_NETWORK,
    },
    Fault {
        title: "… is not heard by Redis",
        test: "one_node_is_not_heard_by_redis",
        effects: [ONE_NODE, ONE_NODE, NOTHING],
        epochs_max: 2,
        heals: ALL,
        remedy: LOOK_AT_NETWORK,
    },
    Fault {
        title: "… hears nothing of PostgreSQL",
        test: "one_node_hears_nothing_of_postgres",
        effects: [ONE_NODE, ONE_NODE, ONE_NODE],
        epochs_max: 2,
        heals: ALL,
        remedy: LOOK_AT_NETWORK,
    },
    Fault {
        title: "… is not heard by PostgreSQL",
        test: "one_node_is_not_heard_by_postgres",
        effects: [ONE_NODE, ONE_NODE, ONE_NODE],
        epochs_max: 2,
        heals: ALL,
        remedy: LOOK_AT_NETWORK,
    },
    Fault {
        title: "all nodes are cut off from Redis",
        test: "all_nodes_are_cut_off_from_redis",
        effects: [FALLBACK_LICENSES, FALLBACK_DEVICES, NOTHING],
        epochs_max: 2,
        heals: ALL,
        remedy: LOOK_AT_NETWORK,
    },
    Fault {
        title: "… hear nothing of Redis",
        test: "all_nodes_hear_nothing_of_redis",
        effects: [FALLBACK_LICENSES, FALLBACK_DEVICES, NOTHING],
        epochs_max: 2,
        heals: ALL,
        remedy: LOOK_AT_NETWORK,
    },
    Fault {
        title: "… are not heard by Redis",
        test: "all_nodes_are_not_heard_by_redis",
        effects: [FALLBACK_LICENSES, FALLBACK_DEVICES, NOTHING],
        epochs_max: 2,
        heals: ALL,
        remedy: LOOK_AT_NETWORK,
    },
    Fault {
        title: "… hear nothing of PostgreSQL",
        test: "all_nodes_hear_nothing_of_postgres",
        effects: [WITHOUT_LEDGER, WITHOUT_LEDGER, DOWN],
        epochs_max: 2,
        heals: ALL,
        remedy: LOOK_AT_NETWORK,
    },
    Fault {
        title: "… are not heard by PostgreSQL",
        test: "all_nodes_are_not_heard_by_postgres",
        effects: [WITHOUT_LEDGER, WITHOUT_LEDGER, DOWN],
        epochs_max: 2,
        heals: ALL,
        remedy: LOOK_AT_NETWORK,
    },
    Fault {
        title: "three of ten answers of Redis are lost",
        test: "three_of_ten_answers_of_redis_are_swallowed",
        effects: [REBUILD, REBUILD, NOTHING],
        epochs_max: 2,
        heals: ALL,
        remedy: LOOK_AT_NETWORK,
    },
    Fault {
        title: "each answer of Redis takes 1 s to 8 s",
        test: "the_answers_of_redis_take_seconds",
        effects: [FALLBACK_LICENSES, FALLBACK_DEVICES, NOTHING],
        epochs_max: 2,
        heals: ALL,
        remedy: LOOK_AT_NETWORK,
    },
    Fault {
        title: "all is 200 ms late each way on the way to Redis, and 30 % of it is lost",
        test: "the_network_to_redis_loses_and_delays",
        effects: [SLOW, SLOW, NOTHING],
        epochs_max: 2,
        heals: ALL,
        remedy: LOOK_AT_NETWORK,
    },
    Fault {
        title: "… on the way to PostgreSQL",
        test: "the_network_to_postgres_loses_and_delays",
        effects: [SLOW, SLOW, SLOW],
        epochs_max: 2,
        heals: ALL,
        remedy: LOOK_AT_NETWORK,
    },
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
    Fault {
        title: "PostgreSQL crashes",
        test: "postgres_is_stopped_at_once_under_load_and_nothing_is_lost_or_there_twice",
        effects: [WITHOUT_LEDGER, WITHOUT_LEDGER, DOWN],
        epochs_max: 2,
        heals: ALL,
        remedy: "bring PostgreSQL back",
    },
    Fault {
        title: "PostgreSQL is frozen (`SIGSTOP`)",
        test: "postgres_is_frozen_and_wakes",
        effects: [WITHOUT_LEDGER, WITHOUT_LEDGER, DOWN],
        epochs_max: 2,
        heals: ALL,
        remedy: "bring PostgreSQL back",
    },
    Fault {
        title: "the disk of PostgreSQL is full",
        test: "the_disk_of_postgres_is_full",
        effects: [WITHOUT_LEDGER, WITHOUT_LEDGER, WITHOUT_LEDGER],
        epochs_max: 0,
        heals: ALL,
        remedy: "make room",
    },
    Fault {
        title: "a standby is promoted that lacks the ledger's tail",
        test: "a_standby_without_the_tail_is_promoted",
        effects: [PROMOTED_LEDGER, PROMOTED_LEDGER, PROMOTED_LEDGER],
        epochs_max: 2,
        heals: "all but the sessions of the tail: they are 404, and their clients ask anew",
        remedy: "replicate synchronously",
    },
    Fault {
        title: "the disk of an embedded server is full",
        test: "the_disk_of_an_embedded_server_is_full",
        effects: [WITHOUT_LEDGER, WITHOUT_LEDGER, WITHOUT_LEDGER],
        epochs_max: 0,
        heals: ALL,
        remedy: "make room",
    },
    Fault {
        title: "without Redis: PostgreSQL crashes",
        test: "postgres_alone_crashes",
        effects: [DOWN, DOWN, DOWN],
        epochs_max: 0,
        heals: ALL,
        remedy: "bring PostgreSQL back",
    },
    Fault {
        title: "… PostgreSQL is frozen (`SIGSTOP`)",
        test: "postgres_alone_is_frozen_and_wakes",
        effects: [DOWN, DOWN, DOWN],
        epochs_max: 0,
        heals: ALL,
        remedy: "bring PostgreSQL back",
    },
    Fault {
        title: "… all nodes are cut off from PostgreSQL",
        test: "all_nodes_are_cut_off_from_postgres_alone",
        effects: [DOWN, DOWN, DOWN],
        epochs_max: 0,
        heals: ALL,
        remedy: LOOK_AT_NETWORK,
    },
    Fault {
        title: "… all nodes hear nothing of PostgreSQL",
        test: "all_nodes_hear_nothing_of_postgres_alone",
        effects: [DOWN, DOWN, DOWN],
        epochs_max: 0,
        heals: ALL,
        remedy: LOOK_AT_NETWORK,
    },
    Fault {
        title: "… all nodes are not heard by PostgreSQL",
        test: "all_nodes_are_not_heard_by_postgres_alone",
        effects: [DOWN, DOWN, DOWN],
        epochs_max: 0,
        heals: ALL,
        remedy: LOOK_AT_NETWORK,
    },
    Fault {
        title: "… one node is cut off from PostgreSQL",
        test: "one_node_is_cut_off_from_postgres_alone",
        effects: [ONE_NODE, ONE_NODE, ONE_NODE],
        epochs_max: 0,
        heals: ALL,
        remedy: LOOK_AT_NETWORK,
    },
    Fault {
        title: "… one node hears nothing of PostgreSQL",
        test: "one_node_hears_nothing_of_postgres_alone",
        effects: [ONE_NODE, ONE_NODE, ONE_NODE],
        epochs_max: 0,
        heals: ALL,
        remedy: LOOK_AT_NETWORK,
    },
    Fault {
        title: "… one node is not heard by PostgreSQL",
        test: "one_node_is_not_heard_by_postgres_alone",
        effects: [ONE_NODE, ONE_NODE, ONE_NODE],
        epochs_max: 0,
        heals: ALL,
        remedy: LOOK_AT_NETWORK,
    },
    Fault {
        title: "… all is 200 ms late each way on the way to PostgreSQL, and 30 % of it is lost",
        test: "the_network_to_postgres_alone_loses_and_delays",
        effects: [HARDLY_SERVED, HARDLY_SERVED, HARDLY_SERVED],
        epochs_max: 0,
        heals: ALL,
        remedy: LOOK_AT_NETWORK,
    },
    Fault {
        title: "… the disk of PostgreSQL is full",
        test: "the_disk_of_postgres_alone_is_full",
        effects: [WITHOUT_LEDGER, WITHOUT_LEDGER, WITHOUT_LEDGER],
        epochs_max: 0,
        heals: ALL,
        remedy: "make room",
    },
    Fault {
        title: "… a standby is promoted that lacks the ledger's tail",
        test: "a_standby_without_the_tail_is_promoted_without_redis",
        effects: [PROMOTED_LEDGER, PROMOTED_LEDGER, PROMOTED_LEDGER],
        epochs_max: 2,
        heals: "all but the sessions of the tail: they are 404, and their clients ask anew",
        remedy: "replicate synchronously",
    },
    Fault {
        title: "… a node is killed (`kill -9`)",
        test: "a_node_over_postgres_alone_is_killed_and_started_again",
        effects: [NOTHING, NOTHING, NOTHING],
        epochs_max: 0,
        heals: "all once the node is started again; the other nodes go on",
        remedy: "start another",
    },
    Fault {
        title: "… the clock of PostgreSQL's host is 400 s ahead",
        test: "the_clock_of_postgresql_alone_is_stepped_forward",
        effects: [NOTHING, NOTHING, NOTHING],
        epochs_max: 0,
        heals: ALL,
        remedy: SET_CLOCK,
    },
    Fault {
        title: "… 400 s behind",
        test: "the_clock_of_postgresql_alone_is_stepped_back",
        effects: [NOTHING, NOTHING, NOTHING],
        epochs_max: 0,
        heals: ALL,
        remedy: SET_CLOCK,
    },
    Fault {
        title: "… a decade ahead",
        test: "the_clock_of_postgresql_alone_shows_another_decade",
        effects: [NOTHING, NOTHING, NOTHING],
        epochs_max: 0,
        heals: ALL,
        remedy: SET_CLOCK,
    },
    Fault {
        title: "… the clock of a node's host is 400 s ahead, then behind",
        test: "the_clock_of_a_node_over_postgresql_is_stepped",
        effects: [NOTHING, NOTHING, NOTHING],
        epochs_max: 0,
        heals: ALL,
        remedy: SET_CLOCK,
    },
    Fault {
        title: "… a decade ahead",
        test: "the_clock_of_a_node_over_postgresql_shows_another_decade",
        effects: [NOTHING, NOTHING, NOTHING],
        epochs_max: 0,
        heals: "all; meanwhile the node refuses every token (401)",
        remedy: SET_CLOCK,
    },
];
