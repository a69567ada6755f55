//! The classic wrong designs of a registry, each of which the suite rejects, by name.
//!
//! All of them are one small registry that is as naive as can be, and right (the suite accepts it), but for one
//! [`Design`] each.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod design;
mod harness;
mod journal;
mod pool;
mod registry;

use std::collections::BTreeSet;
use std::panic;
use std::sync::Once;
use std::time::Duration;

use design::{CapacityFirst, ClockOfTheCaller, CounterWithTtl, EvictsExactlyOne, Right, SetWithOneTtl};
use harness::Naive;
use seatkeeper_registry::conformance::Clause;
use seatkeeper_registry::conformance_runs;

/// A clause that a wrong design makes wait for ever is one that rejects it.
const CLAUSE_TAKES_MAX: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_naive_and_right_is_accepted() {
    assert_eq!(rejecting(conformance_runs!(Naive<Right>)).await, BTreeSet::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_counter_with_a_ttl_is_rejected() {
    rejected(
        conformance_runs!(Naive<CounterWithTtl>),
        &[
            // A crashed client's seat is never given back while others heartbeat.
            "a_silent_holders_seat_comes_free_while_the_others_heartbeat",
            // A retry counts twice.
            "one_machine_takes_one_seat",
            "retries_of_one_claim_take_one_seat",
            "a_holder_is_never_told_that_the_pool_is_full",
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_set_with_one_ttl_is_rejected() {
    rejected(
        conformance_runs!(Naive<SetWithOneTtl>),
        &[
            // Its members never expire one by one.
            "a_silent_holders_seat_comes_free_while_the_others_heartbeat",
            "what_is_due_is_never_later_than_the_next_expiry",
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn membership_that_is_checked_after_capacity_is_rejected() {
    rejected(
        conformance_runs!(Naive<CapacityFirst>),
        &["a_holder_is_never_told_that_the_pool_is_full", "another_user_of_a_machine_shares_its_session"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_clock_of_the_caller_is_rejected() {
    rejected(
        conformance_runs!(Naive<ClockOfTheCaller>),
        &[
            // A node that is fast expires what others keep alive.
            "a_silent_holders_seat_comes_free_while_the_others_heartbeat",
            "a_session_is_shown_as_it_stands",
            "a_clock_that_is_set_back_frees_no_seat",
            "time_never_goes_back",
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn evicting_exactly_one_is_rejected() {
    rejected(
        conformance_runs!(Naive<EvictsExactlyOne>),
        &["after_a_downgrade_as_many_are_evicted_as_it_takes"],
    )
    .await;
}

/// The suite rejects a design, and these clauses are among those that do.
async fn rejected(clauses: Vec<Clause>, expected: &[&'static str]) {
    let rejecting = rejecting(clauses).await;
    let expected: BTreeSet<_> = expected.iter().copied().collect();
    let missed: Vec<_> = expected.difference(&rejecting).collect();
    assert!(missed.is_empty(), "{missed:?} accept it; what rejects it: {rejecting:#?}");
}

/// The clauses that reject a design.
async fn rejecting(clauses: Vec<Clause>) -> BTreeSet<&'static str> {
    do_not_print_what_is_expected();
    let mut rejecting = BTreeSet::new();
    for (name, run) in clauses {
        let verdict = tokio::time::timeout(CLAUSE_TAKES_MAX, tokio::spawn(run())).await;
        if !matches!(verdict, Ok(Ok(()))) {
            rejecting.insert(name);
        }
    }
    rejecting
}

/// Clauses fail by panicking, which is what they are here for. A test's own thread has its name.
fn do_not_print_what_is_expected() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            let of_a_clause = panic.location().is_some_and(|at| at.file().contains("conformance"));
            if !of_a_clause {
                print(panic);
            }
        }));
    });
}
