//! Conformance of the memory backend.

mod memory_harness;

use memory_harness::MemoryHarness;
use seatkeeper_registry::{conformance_suite, lasting_suite};

conformance_suite!(memory, MemoryHarness);
lasting_suite!(memory_lasting, MemoryHarness);
