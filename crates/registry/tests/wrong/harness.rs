//! Harness of the naive registry: two nodes, and a manual clock.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use seatkeeper_core::{RegistryTime, Span};
use seatkeeper_registry::conformance::Harness;
use seatkeeper_registry::{ManualClock, Registry, TimeSource as _};

use crate::design::{Design, Flaw, SKEW};
use crate::registry::{Node, Store};

const START: RegistryTime = RegistryTime::from_millis(1_800_000_000_000);

/// A design under test.
pub(crate) struct Naive<D> {
    nodes: [Arc<dyn Registry>; 2],
    next: AtomicUsize,
    clock: Arc<ManualClock>,
    design: PhantomData<D>,
}

impl<D: Design> Harness for Naive<D> {
    async fn start(journal_events_max: usize) -> Self {
        let clock = Arc::new(ManualClock::at(START));
        let store = Arc::new(Store::new(D::FLAW, journal_events_max, Arc::clone(&clock)));
        let skew = if D::FLAW == Flaw::ClockOfTheCaller { SKEW } else { Span::ZERO };
        let node = |ahead| Arc::new(Node { store: Arc::clone(&store), ahead }) as Arc<dyn Registry>;
        let nodes = [node(Span::ZERO), node(skew)];
        Self { nodes, next: AtomicUsize::new(0), clock, design: PhantomData }
    }

    fn registry(&self) -> Arc<dyn Registry> {
        Arc::clone(&self.nodes[self.next.fetch_add(1, Ordering::Relaxed) % 2])
    }

    async fn let_pass(&self, span: Span) {
        self.clock.advance(span);
    }

    fn ttl(&self) -> Span {
        Span::from_secs(30)
    }

    async fn set_clock_back(&self, span: Span) -> bool {
        self.clock.set(self.clock.now() - span);
        true
    }
}
