//! Faults of the ledger: PostgreSQL beside Redis, and the database of an embedded server.

use super::{ALL, DOWN, NOTHING, PROMOTED_LEDGER, WITHOUT_LEDGER};
use crate::failover::catalogue::Fault;

pub(super) const FAULTS: &[Fault] = &[
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
        remedy: "make room, and start PostgreSQL if it gave up",
    },
    Fault {
        title: "PostgreSQL is read-only",
        test: "postgres_is_read_only",
        effects: [WITHOUT_LEDGER, WITHOUT_LEDGER, WITHOUT_LEDGER],
        epochs_max: 0,
        heals: ALL,
        remedy: "let PostgreSQL write",
    },
    Fault {
        title: "PostgreSQL takes no new connections",
        test: "postgres_takes_no_new_connections",
        effects: [NOTHING, NOTHING, NOTHING],
        epochs_max: 0,
        heals: ALL,
        remedy: "make room for connections",
    },
    Fault {
        title: "… and ends the connections of the nodes",
        test: "postgres_ends_connections_and_refuses_new_ones",
        effects: [WITHOUT_LEDGER, WITHOUT_LEDGER, DOWN],
        epochs_max: 2,
        heals: ALL,
        remedy: "make room for connections",
    },
    Fault {
        title: "the audit log is locked",
        test: "the_audit_log_is_locked",
        effects: [WITHOUT_LEDGER, WITHOUT_LEDGER, WITHOUT_LEDGER],
        epochs_max: 0,
        heals: ALL,
        remedy: "end the transaction with the lock",
    },
    Fault {
        title: "the table of buckets is locked",
        test: "the_table_of_buckets_is_locked",
        effects: [WITHOUT_LEDGER, WITHOUT_LEDGER, DOWN],
        epochs_max: 2,
        heals: ALL,
        remedy: "end the transaction with the lock",
    },
    Fault {
        title: "a standby is promoted that lacks the ledger's tail",
        test: "a_standby_without_the_tail_is_promoted",
        effects: [PROMOTED_LEDGER, PROMOTED_LEDGER, PROMOTED_LEDGER],
        epochs_max: 2,
        heals: "all but the sessions of the tail: they are 404, and their clients ask anew",
        remedy: "replicate synchronously; with a sink, [confirm the usage](usage.md#after-a-promotion-or-a-restore)",
    },
    Fault {
        title: "the disk of an embedded server is full",
        test: "the_disk_of_an_embedded_server_is_full",
        effects: [WITHOUT_LEDGER, WITHOUT_LEDGER, WITHOUT_LEDGER],
        epochs_max: 0,
        heals: ALL,
        remedy: "make room",
    },
];
