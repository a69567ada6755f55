//! Measures a fault and checks its promises in the catalogue.

use std::time::{Duration, Instant};

use super::Fault;
use crate::failover::steady::{KINDS, LateSessions, Latecomers, Steady};
use crate::failover::support::{Nodes, busyness, epochs_per_bucket};
use crate::support::knobs;

/// The number of admissions and heartbeats after which a kind of pool counts as served.
const WELL: u64 = 5;

/// The pause after a fault that is injected repeatedly. Two fallbacks in quick succession count as one party that comes and
/// goes, and the next return is delayed.
const FAULTS_APART: Duration = Duration::from_secs(10);

/// A fault in progress.
pub(crate) struct Watch {
    fault: &'static Fault,
    epochs: Vec<u64>,
    began: Instant,
    ended: Option<Instant>,
    latecomers: Latecomers,
}

impl Watch {
    /// Begins to measure the fault of `test`.
    pub(crate) async fn begin(test: &str, nodes: &Nodes) -> Self {
        let (epochs, latecomers) = (epochs_per_bucket(nodes).await, Latecomers::begin(nodes).await);
        Self { fault: Fault::tried_by(test), epochs, began: Instant::now(), ended: None, latecomers }
    }

    /// Notes the end of the fault, the first time it is called.
    pub(crate) fn is_over(&mut self) {
        self.ended.get_or_insert_with(Instant::now);
    }

    /// Waits until every kind of pool is served and every bucket is back in Redis. Fails the test if a
    /// promise was broken.
    pub(crate) async fn judge(mut self, nodes: &mut Nodes, steady: &mut Steady) {
        let ended = self.ended.unwrap_or_else(Instant::now);
        let may_forget = steady.may_have_forgotten();
        self.latecomers.stop(may_forget).await;
        let renewed = self.latecomers.are_renewed(may_forget);
        // A fallback may begin just as the fault ends. Two rounds also wait for its return.
        let served = async {
            for _ in 0..2 {
                nodes.redis_serves_again().await;
                steady.all_kinds_go_on(WELL).await;
            }
        };
        let (longest, ()) = tokio::join!(renewed, served);
        // By now every session has been handed back to Redis.
        let longest = longest.max(self.latecomers.are_renewed(may_forget).await);
        let late = self.latecomers.into_sessions();
        steady.kept_its_promises();
        let (during, after) = (steady.gaps(self.began, ended), steady.gaps(ended, Instant::now()));
        let slowest = steady.longest_waits(ended, Instant::now()).await;
        let raised = nodes.raised(&self.epochs).await;
        let stretch = busyness();
        println!("{}: {raised} epochs; the machine is {stretch:.1} times as slow as alone", self.fault.test);
        let mut broken = Vec::new();
        for (kind, name) in KINDS.into_iter().enumerate() {
            println!(
                "{name}: during the fault {:?}, after it {:?}, the slowest request after it {:?}",
                during[kind], after[kind], slowest[kind]
            );
            let effect = self.fault.effects[kind];
            broken.extend(
                effect
                    .broken_by(during[kind], after[kind], ended - self.began, stretch)
                    .map(|broken| format!("{name}: {broken}")),
            );
            broken.extend(effect.is_slow_afterwards(slowest[kind], stretch));
        }
        println!("{} sessions began during the fault; the last was renewed after {longest:?}", count(&late));
        broken.extend(self.fault.effects[0].late_sessions_wait_too_long(longest, stretch));
        steady.keeps(late);
        assert!(broken.is_empty() || !knobs::lapses_are_bounded(), "{}: {broken:#?}", self.fault.title);
        nodes.raised_at_most(self.fault.epochs_max, &self.epochs).await;
        if knobs::fault_cycles() > 1 && raised > 0 {
            tokio::time::sleep(FAULTS_APART).await;
        }
    }
}

fn count(late: &[LateSessions]) -> usize {
    late.iter().map(LateSessions::len).sum()
}
