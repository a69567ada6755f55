//! Conformance of the memory backend.

mod memory_harness;

use memory_harness::MemoryHarness;
use seatkeeper_registry::{conformance_clauses, conformance_suite};

conformance_suite!(memory, MemoryHarness);

mod memory_lasting {
    use super::*;

    conformance_clauses! { MemoryHarness: opening { a_record_that_may_be_outdated_opens_no_pool, } }
}
