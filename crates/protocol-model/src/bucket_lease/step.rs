//! The steps between ticks.

use super::fault::{Cut, Fault};
use super::rules::BucketRules;
use super::state::{PAIR, Scene};

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketStep {
    /// A tick passes, and every node does its periodic work.
    Tick,
    /// A node reads the ledger early.
    Read(usize),
    /// A node reads the identity of Redis early, after a refused call.
    ReadIdentity(usize),
    /// The holder heartbeats at a node.
    Heartbeat(usize),
    /// A node ends the session after its TTL, by a sweep or a claim of a second client.
    Expire(usize),
    /// A node brings an end from the journal of Redis to the ledger.
    Commit(usize),
    /// A node raises the epoch.
    Raise(usize),
    /// The rebuild takes its next step, or aborts.
    Proceed,
    /// The holder falls silent.
    FallSilent,
    /// A fault happens.
    Strike(Fault),
    /// A fault begins.
    Cut(Cut),
    /// A fault is over.
    Mend(Cut),
    /// A bad network begins to lose the messages between a node and Redis, or lets them pass again.
    Waver(usize),
}

/// Lists every candidate step.
pub(super) fn all(faults: &[Fault], cuts: &[Cut], steps: &mut Vec<BucketStep>) {
    steps.extend([BucketStep::Tick, BucketStep::Proceed, BucketStep::FallSilent]);
    for node in 0..PAIR {
        steps.extend([
            BucketStep::Read(node),
            BucketStep::ReadIdentity(node),
            BucketStep::Heartbeat(node),
            BucketStep::Expire(node),
            BucketStep::Commit(node),
            BucketStep::Raise(node),
            BucketStep::Waver(node),
        ]);
    }
    steps.extend(faults.iter().copied().map(BucketStep::Strike));
    steps.extend(cuts.iter().copied().map(BucketStep::Cut));
    steps.extend(cuts.iter().copied().map(BucketStep::Mend));
}

impl Scene {
    /// Takes a step. Returns `None` if the step is impossible.
    pub(super) fn take(&mut self, step: BucketStep, rules: &BucketRules) -> Option<()> {
        match step {
            BucketStep::Tick => {
                let is_held_up = self.rebuild.is_some_and(|rebuild| {
                    rebuild.is_due && !rebuild.is_frozen && !self.repeats_step(rebuild, rules)
                });
                (!is_held_up).then_some(())?;
                self.tick(rules);
                Some(())
            }
            BucketStep::Read(node) => self.read_ledger(node),
            BucketStep::ReadIdentity(node) => rules.identity_is_read_again.then(|| self.read_identity(node)),
            BucketStep::Heartbeat(node) => self.heartbeat(node, rules),
            BucketStep::Expire(node) => self.expire(node, rules),
            BucketStep::Commit(node) => self.commit(node),
            BucketStep::Raise(node) => self.raise(node, rules),
            BucketStep::Proceed => self.proceed(rules),
            BucketStep::FallSilent => {
                self.holder.is_silent = true;
                Some(())
            }
            BucketStep::Strike(fault) => self.strike(fault),
            BucketStep::Cut(cut) => self.cut(cut),
            BucketStep::Mend(cut) => self.mend(cut),
            BucketStep::Waver(node) => self.waver(node),
        }
    }

    fn read_ledger(&mut self, node: usize) -> Option<()> {
        let reaches_ledger = self.reaches_ledger(node);
        let (epoch, mode, node) = (self.epoch, self.mode, &mut self.nodes[node]);
        reaches_ledger.then(|| node.read(epoch, mode))
    }

    fn expire(&mut self, node: usize, rules: &BucketRules) -> Option<()> {
        if self.serves_by_redis(node, rules) {
            return self.redis.expire(self.nodes[node].epoch);
        }
        (self.serves_by_standby(node, rules) && self.standby.session_left == 0).then_some(())?;
        self.has_ended = true;
        Some(())
    }

    /// Commits an end. The ledger accepts ends of the current epoch only.
    fn commit(&mut self, node: usize) -> Option<()> {
        let end_epoch = self.redis.journaled_end?;
        let is_brought = self.nodes[node].hears_redis() && self.reaches_ledger(node);
        (is_brought && end_epoch == self.epoch).then_some(())?;
        (self.has_ended, self.redis.journaled_end) = (true, None);
        Some(())
    }
}
