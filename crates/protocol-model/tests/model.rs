//! Walks through the failover protocol: complete, and without each safeguard in turn.
#![expect(clippy::print_stdout, reason = "prints the size of a walk, and the path to a broken promise")]

mod support;

use seatkeeper_protocol_model::{Failover, Fallback, Safeguards, promise};
use stateright::Checker;

use support::{assert_broken, assert_kept, states_min, walk};

/// A seat, two clients, a failure of Redis, and a rebuild.
const FAILURE: Failover = Failover {
    limit: 1,
    clients: 2,
    faults: 1,
    epochs: 2,
    fallback: None,
    answers_by_journal: false,
    safeguards: Safeguards::ALL,
};

/// Redis fails once, and the mode may change.
const FAILURE_OR_FALLBACK: Failover = Failover { fallback: Some(Fallback::Postgres), ..FAILURE };

/// The mode changes, and changes back.
const FALLBACK_AND_RETURN: Failover =
    Failover { faults: 0, epochs: 3, fallback: Some(Fallback::Postgres), ..FAILURE };

/// Answers rest on the journal. Rebuilds break off, and no memory is lost.
const JOURNAL: Failover = Failover { faults: 0, epochs: 4, answers_by_journal: true, ..FAILURE };

/// The same, and the mode changes.
const JOURNAL_AND_FALLBACK: Failover = Failover { epochs: 3, fallback: Some(Fallback::Postgres), ..JOURNAL };

/// The mode changes and changes back, with no registry meanwhile. Rebuilds break off.
const LEDGER_ALONE: Failover =
    Failover { faults: 0, epochs: 3, fallback: Some(Fallback::LedgerAlone), ..FAILURE };

#[test]
fn a_failure_of_redis_breaks_no_promise() {
    assert_kept(FAILURE, states_min::FAILURE);
}

#[test]
fn a_failure_of_redis_with_two_seats_breaks_no_promise() {
    assert_kept(Failover { limit: 2, clients: 3, ..FAILURE }, states_min::TWO_SEATS);
}

#[test]
fn a_failure_or_a_fallback_breaks_no_promise() {
    assert_kept(FAILURE_OR_FALLBACK, states_min::FAILURE_OR_FALLBACK);
}

#[test]
fn a_fallback_and_a_return_break_no_promise() {
    assert_kept(FALLBACK_AND_RETURN, states_min::FALLBACK_AND_RETURN);
}

#[test]
fn two_rebuilds_after_a_failure_break_no_promise() {
    assert_kept(Failover { epochs: 3, ..FAILURE }, states_min::TWO_REBUILDS);
}

#[test]
fn rebuilds_that_break_off_break_no_promise_of_the_journal() {
    assert_kept(JOURNAL, states_min::JOURNAL);
}

#[test]
fn a_fallback_that_breaks_off_breaks_no_promise_of_the_journal() {
    assert_kept(JOURNAL_AND_FALLBACK, states_min::JOURNAL_AND_FALLBACK);
}

#[test]
fn renewals_by_the_ledger_alone_break_no_promise() {
    assert_kept(LEDGER_ALONE, states_min::LEDGER_ALONE);
}

#[test]
fn renewals_by_the_ledger_alone_break_no_promise_if_redis_fails_as_well() {
    assert_kept(Failover { epochs: 2, faults: 1, ..LEDGER_ALONE }, states_min::LEDGER_ALONE_OR_FAILURE);
}

#[test]
fn renewals_by_the_ledger_alone_of_two_seats_break_no_promise() {
    let model = Failover { limit: 2, clients: 3, epochs: 2, ..LEDGER_ALONE };
    assert_kept(model, states_min::LEDGER_ALONE_TWO_SEATS);
}

#[test]
fn a_ledger_that_takes_any_epoch_breaks_the_limit() {
    let safeguards = Safeguards { ledger_demands_epoch: false, ..Safeguards::ALL };
    assert_broken(&Failover { safeguards, ..FAILURE }, promise::LIMIT);
}

#[test]
fn scripts_that_serve_any_epoch_break_the_limit() {
    let safeguards = Safeguards { script_demands_epoch: false, ..Safeguards::ALL };
    assert_broken(&Failover { safeguards, ..FAILURE }, promise::LIMIT);
}

#[test]
fn nodes_that_use_any_server_break_the_limit() {
    let safeguards = Safeguards { node_demands_identity: false, ..Safeguards::ALL };
    assert_broken(&Failover { safeguards, ..FAILURE }, promise::LIMIT);
}

#[test]
fn a_rebuild_that_waits_for_no_lease_breaks_the_limit() {
    let safeguards = Safeguards { rebuild_waits_for_leases: false, ..Safeguards::ALL };
    assert_broken(&Failover { safeguards, ..FAILURE }, promise::LIMIT);
}

#[test]
fn a_bucket_that_is_served_before_it_is_filled_breaks_the_limit() {
    let safeguards = Safeguards { rebuild_fills: false, ..Safeguards::ALL };
    assert_broken(&Failover { safeguards, ..FAILURE }, promise::LIMIT);
}

#[test]
fn to_replay_more_than_the_last_epoch_breaks_the_limit() {
    let safeguards = Safeguards { replay_takes_last_epoch_only: false, ..Safeguards::ALL };
    assert_broken(&Failover { safeguards, ..FALLBACK_AND_RETURN }, promise::LIMIT);
}

#[test]
fn to_replay_the_epoch_of_a_rebuild_that_broke_off_loses_answered_admissions() {
    let safeguards = Safeguards { ledger_keeps_unreplayed_epoch: false, ..Safeguards::ALL };
    for model in [JOURNAL, JOURNAL_AND_FALLBACK] {
        assert_broken(&Failover { safeguards, ..model }, promise::KNOWN);
        assert_broken(&Failover { safeguards, ..model }, promise::LIMIT);
    }
}

#[test]
fn a_replay_noted_after_the_bucket_is_served_loses_answered_admissions() {
    let safeguards = Safeguards { replay_is_noted_before_serving: false, ..Safeguards::ALL };
    assert_broken(&Failover { safeguards, ..JOURNAL }, promise::KNOWN);
    assert_broken(&Failover { safeguards, ..JOURNAL }, promise::LIMIT);
}

#[test]
fn a_replay_of_ends_without_a_record_ends_renewed_sessions() {
    let safeguards = Safeguards { replay_stops_at_false_end: false, ..Safeguards::ALL };
    assert_broken(&Failover { safeguards, ..LEDGER_ALONE }, promise::NO_FALSE_END);
    assert_broken(&Failover { safeguards, ..LEDGER_ALONE }, promise::LIMIT);
}

#[test]
fn a_ledger_that_forgets_a_fallback_that_broke_off_ends_renewed_sessions() {
    let safeguards = Safeguards { ledger_keeps_lower_mode: false, ..Safeguards::ALL };
    assert_broken(&Failover { safeguards, ..LEDGER_ALONE }, promise::NO_FALSE_END);
    assert_broken(&Failover { safeguards, ..LEDGER_ALONE }, promise::LIMIT);
}

/// Nodes go on with a server whose memory was replaced: the chain is the last line of defence.
const CARELESS: Failover =
    Failover { safeguards: Safeguards { node_demands_identity: false, ..Safeguards::ALL }, ..FAILURE };

#[test]
fn the_chain_keeps_the_record_where_nodes_use_any_server() {
    let checker = walk(CARELESS);
    for promise in [promise::RECORD, promise::ONE_END, promise::ON_RECORD] {
        checker.assert_no_discovery(promise);
    }
}

#[test]
fn a_ledger_that_takes_two_events_for_one_number_breaks_the_record_then() {
    let safeguards = Safeguards { ledger_keeps_chain: false, ..CARELESS.safeguards };
    assert_broken(&Failover { safeguards, ..CARELESS }, promise::RECORD);
}
