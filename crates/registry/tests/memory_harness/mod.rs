//! Harness of the memory backend, on a manual clock.

use std::sync::Arc;

use seatkeeper_core::{Region, RegistryTime, Span};
use seatkeeper_registry::conformance::Harness;
use seatkeeper_registry::memory::MemoryRegistry;
use seatkeeper_registry::{ManualClock, Registry};

const EPOCH: u64 = 1;
const START: RegistryTime = RegistryTime::from_millis(1_800_000_000_000);

/// A registry in memory and its clock.
pub(crate) struct MemoryHarness {
    registry: Arc<dyn Registry>,
    clock: Arc<ManualClock>,
}

impl Harness for MemoryHarness {
    async fn start(journal_events_max: usize) -> Self {
        let clock = Arc::new(ManualClock::at(START));
        let region = Region::default();
        let registry = MemoryRegistry::new(EPOCH, region, journal_events_max, Arc::clone(&clock));
        Self { registry: Arc::new(registry), clock }
    }

    fn registry(&self) -> Arc<dyn Registry> {
        Arc::clone(&self.registry)
    }

    async fn let_pass(&self, span: Span) {
        self.clock.advance(span);
    }

    fn ttl(&self) -> Span {
        Span::from_secs(30)
    }

    async fn set_clock_back(&self, span: Span) -> bool {
        let reading = seatkeeper_registry::TimeSource::now(&*self.clock);
        self.clock.set(reading - span);
        true
    }

    async fn pause(&self, span: Span) -> bool {
        self.clock.pause(span);
        true
    }
}
