//! Plays faults to the client of each language, on a real server: embedded, and three nodes over Redis and PostgreSQL.
//!
//! `scripts/sdk-conformance` runs every scenario.
//!
//! `SEATKEEPER_SDKS=rust,python` narrows the languages. `SEATKEEPER_SEED` repeats the random spans of a run.
#![allow(clippy::expect_used, clippy::panic, reason = "a scenario that fails is a failed test")]

mod conformance {
    pub(crate) mod bad_input;
    pub(crate) mod certificates;
    pub(crate) mod ends;
    pub(crate) mod faults;
    pub(crate) mod fleet;
    pub(crate) mod processes;
    pub(crate) mod tokens;
}

use std::time::{Duration, Instant};

use conformance::{bad_input, certificates, ends, faults, fleet, processes, tokens};
use seatkeeper_sdk_conformance::language::Language;
use seatkeeper_sdk_conformance::stage::{Cast, Stage, Terms};
use seatkeeper_sdk_conformance::topology::Topology;

/// Returns the cast of a scenario; `None` for a language that `SEATKEEPER_SDKS` leaves out.
fn cast(language: Language, topology: Topology) -> Option<Cast> {
    let rust_driver = env!("CARGO_BIN_EXE_sdk-conformance-rust-driver");
    language.is_wanted().then_some(Cast { language, topology, rust_driver })
}

/// Starts the stage of a scenario.
pub(crate) async fn stage(cast: Cast, terms: Terms) -> Stage {
    Stage::start(cast, terms).await
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

/// Makes a test of each scenario in each language, over a topology.
macro_rules! topology {
    ($topology:ident $variant:ident { $($module:ident::$name:ident;)* }) => {
        mod $topology {
            use super::*;
            topology!(@ rust Rust $variant $($module::$name)*);
            topology!(@ python Python $variant $($module::$name)*);
            topology!(@ typescript TypeScript $variant $($module::$name)*);
            topology!(@ go Go $variant $($module::$name)*);
            topology!(@ c C $variant $($module::$name)*);
        }
    };
    (@ $module:ident $language:ident $topology:ident $($scenario:ident::$name:ident)*) => {
        mod $module {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    if let Some(cast) = cast(Language::$language, Topology::$topology) {
                        $scenario::$name(cast).await;
                    }
                }
            )*
        }
    };
}

/// Makes the tests of the scenarios that every topology plays, and of `own` scenarios of a topology.
macro_rules! scenarios {
    ($topology:ident $variant:ident { $($own:tt)* }) => {
        topology! {
            $topology $variant {
                faults::a_frozen_server_costs_nothing;
                faults::a_lost_reply_to_an_acquire_takes_no_second_seat;
                faults::lost_replies_to_heartbeats_cost_nothing;
                faults::a_black_hole_ends_the_seat_by_its_deadline;
                faults::requests_that_arrive_late_do_no_harm;
                faults::connections_that_break_cost_nothing;
                faults::unavailable_answers_cost_nothing;
                faults::throttled_answers_cost_nothing;
                faults::pages_in_place_of_answers_cost_nothing;
                bad_input::bad_input_is_a_typed_error;
                certificates::a_new_certificate_costs_nothing;
                certificates::a_certificate_of_a_stranger_is_an_outage;
                tokens::a_token_that_expires_is_read_again;
                tokens::a_rejected_license_token_is_replaced;
                ends::a_suspended_license_ends_the_seat;
                ends::a_revoked_session_is_told_by_the_stream;
                ends::a_revoked_session_is_told_by_the_next_heartbeat;
                ends::a_lowered_ttl_costs_nothing;
                ends::a_release_frees_the_seat;
                ends::a_close_frees_the_seat;
                ends::a_lost_reply_to_a_release_frees_the_seat;
                ends::a_release_in_an_outage_ends_in_time;
                processes::a_frozen_program_whose_seat_was_taken_tells_the_loss;
                processes::a_frozen_program_whose_seat_is_free_takes_it_again;
                processes::the_seat_of_a_killed_program_is_free_after_the_ttl;
                fleet::two_hundred_seats_outlive_a_restart;
                $($own)*
            }
        }
    };
}

scenarios! {
    embedded Embedded {
        faults::a_killed_server_that_restarts_costs_nothing;
    }
}

scenarios! {
    three_nodes ThreeNodes {
        faults::a_killed_node_costs_nothing;
    }
}
