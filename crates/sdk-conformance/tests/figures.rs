//! Measures the clients against the targets of `docs/clients.md`. `scripts/sdk-figures` runs every measurement.
//!
//! `SEATKEEPER_FIGURES_CYCLES` is the number of cycles from open to close. A missed target is printed, and fails no test, except
//! for growth: a busy host misses targets, too.
#![allow(clippy::expect_used, clippy::panic, reason = "a measurement that fails is a failed test")]
#![allow(clippy::print_stdout, reason = "the figures are the output")]

mod figures {
    pub(crate) mod costs;
    pub(crate) mod times;
}

use std::time::Duration;

use seatkeeper_sdk_conformance::driver::Driver;
use seatkeeper_sdk_conformance::language::Language;
use seatkeeper_sdk_conformance::stage::{Cast, Stage, Terms};
use seatkeeper_sdk_conformance::topology::Topology;

use figures::{costs, times};

/// Starts the stage of a measurement.
pub(crate) async fn stage(language: Language, seats: u32, ttl_seconds: u64) -> Stage {
    let rust_driver = env!("CARGO_BIN_EXE_sdk-conformance-rust-driver");
    let cast = Cast { language, topology: Topology::Embedded, rust_driver };
    Stage::start(cast, Terms { seats, ttl: Duration::from_secs(ttl_seconds) }).await
}

/// Ends a driver, whose seats must be free then.
pub(crate) async fn close(stage: Stage, driver: Driver) {
    driver.finish().await;
    stage.server.wait_for_machines(&[], stage.terms.ttl).await;
}

/// Prints a figure beside its target.
pub(crate) fn print(language: Language, what: &str, figure: f64, target: f64, unit: &str) {
    let verdict = if figure <= target { "met" } else { "MISSED" };
    println!("figure | {} | {what} | {figure:.1} {unit} | {target} {unit} | {verdict}", language.name());
}

/// Makes a test of each measurement in each language.
macro_rules! measurements {
    ($($module:ident::$name:ident;)*) => {
        measurements!(@ rust Rust $($module::$name)*);
        measurements!(@ python Python $($module::$name)*);
        measurements!(@ typescript TypeScript $($module::$name)*);
        measurements!(@ go Go $($module::$name)*);
        measurements!(@ c C $($module::$name)*);
    };
    (@ $module:ident $language:ident $($kind:ident::$name:ident)*) => {
        mod $module {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    if Language::$language.is_wanted() {
                        $kind::$name(Language::$language).await;
                    }
                }
            )*
        }
    };
}

measurements! {
    times::time_to_the_free_seat_after_a_close;
    times::time_to_the_free_seat_after_a_kill;
    times::time_to_the_word_of_a_loss;
    times::time_to_the_truth_after_a_wake_up;
    times::price_of_a_check;
    costs::cost_of_a_thousand_seats;
    costs::cost_of_a_thousand_seats_without_streams;
    costs::growth_by_cycles;
}
