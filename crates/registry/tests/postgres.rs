//! Conformance of the PostgreSQL backend.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod postgres_clock;
mod postgres_harness;
mod postgres_lost;
mod postgres_sections;

use postgres_harness::PostgresHarness;
use seatkeeper_registry::{conformance_suite, rebuilding_suite, record_suite};

conformance_suite!(postgres, PostgresHarness);
rebuilding_suite!(postgres_rebuilt, PostgresHarness);
record_suite!(postgres_record, PostgresHarness);
