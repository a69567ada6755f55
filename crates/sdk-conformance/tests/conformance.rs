//! Plays faults to the client of each language, on a real server. `scripts/sdk-conformance` runs every scenario.
//!
//! `SEATKEEPER_SDKS=rust,python` narrows the languages. `SEATKEEPER_SEED` repeats the random spans of a run.
#![allow(clippy::expect_used, clippy::panic, reason = "a scenario that fails is a failed test")]

mod conformance {
    pub(crate) mod ends;
    pub(crate) mod faults;
    pub(crate) mod processes;
    pub(crate) mod tokens;
}

use std::time::{Duration, Instant};

use conformance::{ends, faults, processes, tokens};
use seatkeeper_sdk_conformance::language::Language;
use seatkeeper_sdk_conformance::stage::{Stage, Terms};

/// Starts the stage of a scenario.
pub(crate) async fn stage(language: Language, terms: Terms) -> Stage {
    Stage::start(language, env!("CARGO_BIN_EXE_sdk-conformance-rust-driver"), terms).await
}

/// Waits until `at`.
pub(crate) async fn until(at: Instant) {
    tokio::time::sleep_until(at.into()).await;
}

/// Lets a random part of an interval between heartbeats pass, so that a fault comes at any moment of the interval.
pub(crate) async fn any_moment(stage: &mut Stage) {
    let span = stage.random_span(stage.interval());
    tokio::time::sleep(span).await;
}

/// Terms of one seat with a time to live of `seconds`.
pub(crate) fn one_seat(seconds: u64) -> Terms {
    Terms { seats: 1, ttl: Duration::from_secs(seconds) }
}

/// Makes a test of each scenario in each language.
macro_rules! scenarios {
    ($($(#[$doc:meta])* $module:ident::$name:ident;)*) => {
        scenarios!(@ rust Rust $($module::$name)*);
        scenarios!(@ python Python $($module::$name)*);
        scenarios!(@ typescript TypeScript $($module::$name)*);
        scenarios!(@ go Go $($module::$name)*);
    };
    (@ $language:ident $variant:ident $($module:ident::$name:ident)*) => {
        mod $language {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    if Language::$variant.is_wanted() {
                        $module::$name(Language::$variant).await;
                    } else {
                        eprintln!("left out by SEATKEEPER_SDKS");
                    }
                }
            )*
        }
    };
}

scenarios! {
    faults::a_killed_server_that_restarts_costs_nothing;
    faults::a_frozen_server_costs_nothing;
    faults::a_lost_reply_to_an_acquire_takes_no_second_seat;
    faults::a_black_hole_ends_the_seat_by_its_deadline;
    faults::requests_that_arrive_late_do_no_harm;
    faults::connections_that_break_cost_nothing;
    faults::unavailable_answers_cost_nothing;
    faults::throttled_answers_cost_nothing;
    faults::pages_in_place_of_answers_cost_nothing;
    tokens::a_token_that_expires_is_read_again;
    tokens::a_rejected_license_token_is_replaced;
    ends::a_suspended_license_ends_the_seat;
    ends::a_revoked_session_is_told_by_the_stream;
    ends::a_revoked_session_is_told_by_the_next_heartbeat;
    ends::a_release_frees_the_seat;
    ends::a_close_frees_the_seat;
    ends::a_release_in_an_outage_ends_in_time;
    processes::a_frozen_program_whose_seat_was_taken_tells_the_loss;
    processes::a_frozen_program_whose_seat_is_free_takes_it_again;
    processes::the_seat_of_a_killed_program_is_free_after_the_ttl;
    processes::fifty_seats_outlive_a_restart;
}
