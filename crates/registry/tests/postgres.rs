//! Conformance of the PostgreSQL backend.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod postgres_clock;
mod postgres_harness;
mod postgres_sections;

use postgres_harness::PostgresHarness;
use seatkeeper_registry::{conformance_clauses, conformance_suite, rebuilding_suite};

conformance_suite!(postgres, PostgresHarness);
rebuilding_suite!(postgres_rebuilt, PostgresHarness);

mod postgres_lasting {
    use super::*;

    conformance_clauses! { PostgresHarness: opening { a_record_that_may_be_outdated_opens_no_pool, } }
}
