//! Conformance of the memory backend.

mod memory_harness;

use memory_harness::MemoryHarness;
use seatkeeper_registry::{conformance_suite, record_suite};

conformance_suite!(memory, MemoryHarness);
record_suite!(memory_record, MemoryHarness);
