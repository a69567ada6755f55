//! Measures a fault and checks its promises in the catalogue.

use std::time::Instant;

use super::Fault;
use crate::failover::steady::{KINDS, Steady};
use crate::failover::support::{Nodes, busyness, epochs_per_bucket};
use crate::support::knobs;

/// The number of admissions and heartbeats after which a kind of pool counts as served.
const WELL: u64 = 5;

/// A fault in progress.
#[derive(Debug)]
pub(crate) struct Watch {
    fault: &'static Fault,
    epochs: Vec<u64>,
    began: Instant,
    ended: Option<Instant>,
}

impl Watch {
    /// Begins to measure the fault of `test`.
    pub(crate) async fn begin(test: &str, nodes: &Nodes) -> Self {
        let epochs = epochs_per_bucket(nodes).await;
        Self { fault: Fault::tried_by(test), epochs, began: Instant::now(), ended: None }
    }

    /// Notes the end of the fault, the first time it is called.
    pub(crate) fn is_over(&mut self) {
        self.ended.get_or_insert_with(Instant::now);
    }

    /// Waits until every kind of pool is served and every bucket is back in Redis. Fails the test if a
    /// promise was broken.
    pub(crate) async fn judge(self, nodes: &mut Nodes, steady: &mut Steady) {
        let ended = self.ended.unwrap_or_else(Instant::now);
        // A fallback may begin just as the fault ends. Two rounds also wait for its return.
        for _ in 0..2 {
            nodes.redis_serves_again().await;
            steady.all_kinds_go_on(WELL).await;
        }
        steady.kept_its_promises();
        let (during, after) = (steady.gaps(self.began, ended), steady.gaps(ended, Instant::now()));
        let raised = nodes.raised(&self.epochs).await;
        let stretch = busyness();
        println!("{}: {raised} epochs; the machine is {stretch:.1} times as slow as alone", self.fault.test);
        let mut broken = Vec::new();
        for (kind, name) in KINDS.into_iter().enumerate() {
            println!("{name}: during the fault {:?}, after it {:?}", during[kind], after[kind]);
            let effect = self.fault.effects[kind];
            broken.extend(
                effect
                    .broken_by(during[kind], after[kind], ended - self.began, stretch)
                    .map(|broken| format!("{name}: {broken}")),
            );
        }
        assert!(broken.is_empty() || !knobs::lapses_are_bounded(), "{}: {broken:#?}", self.fault.title);
        let most = match self.fault.epochs_max {
            0 => 0,
            most if knobs::lapses_are_bounded() => most,
            // On a busy machine a rebuild may outlast its locks, and a second node begins anew.
            most => most + 2,
        };
        nodes.raised_at_most(most, &self.epochs).await;
    }
}
