//! Classic wrong designs of a registry. The suite rejects each design, by clauses named here.
//!
//! All designs are one small, naive registry, which is correct (the suite accepts it) except for one
//! [`design::Flaw`].
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

/// Time limit of a clause. A clause that a wrong design blocks forever counts as a rejection.
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
            // A crashed client's seat is never freed while other clients heartbeat.
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
            // Members of the set never expire one by one.
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
            // A node with a fast clock expires sessions that other nodes keep alive.
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

/// Checks that the suite rejects a design, at least by the `expected` clauses.
async fn rejected(clauses: Vec<Clause>, expected: &[&'static str]) {
    let rejecting = rejecting(clauses).await;
    let expected: BTreeSet<_> = expected.iter().copied().collect();
    let missed: Vec<_> = expected.difference(&rejecting).collect();
    assert!(missed.is_empty(), "{missed:?} accept it; what rejects it: {rejecting:#?}");
}

/// Returns the clauses that reject a design.
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

/// Silences the panics of clauses, which are expected here. Panics of the tests themselves are still printed.
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
