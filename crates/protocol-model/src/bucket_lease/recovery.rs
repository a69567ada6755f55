//! Bounded liveness: without further faults, and with every node active in each tick.

use super::rules::BucketRules;
use super::state::{PAIR, Scene};

/// Limit in ticks for serving the bucket again, and for freeing the seat of a silent client.
const RECOVERS_WITHIN: usize = 16;

/// Steps of rebuilds within a tick, at most.
const REBUILD_STEPS: usize = 4;

impl Scene {
    /// Returns `true` if the bucket is served within [`RECOVERS_WITHIN`] ticks, with no rebuild left to do.
    ///
    /// A state passes if no node reaches the ledger, because no bucket can be rebuilt without the ledger.
    pub(super) fn is_served_again(&self, rules: &BucketRules) -> bool {
        let reaches_ledger = (0..PAIR).any(|node| self.reaches_ledger(node));
        let is_settled = |scene: &Self| scene.is_settled(rules) && scene.is_served(rules);
        !reaches_ledger || self.comes_to(rules, is_settled)
    }

    /// Returns `true` if a silent client's session is over within [`RECOVERS_WITHIN`] ticks of the last
    /// fault's end.
    pub(super) fn frees_seat(&self, rules: &BucketRules) -> bool {
        !self.holder.is_silent || self.mended().comes_to(rules, |_| false)
    }

    fn comes_to(&self, rules: &BucketRules, is_goal: impl Fn(&Self) -> bool) -> bool {
        let mut scene = *self;
        for _ in 0..RECOVERS_WITHIN {
            scene.act_and_tick(rules);
            if scene.has_ended || is_goal(&scene) {
                return true;
            }
        }
        false
    }

    fn is_settled(&self, rules: &BucketRules) -> bool {
        let is_needed = |node| self.reaches_ledger(node) && self.need(node, rules).is_some();
        self.rebuild.is_none() && !(0..PAIR).any(is_needed)
    }

    /// Takes every possible step of every node, and passes a tick.
    fn act_and_tick(&mut self, rules: &BucketRules) {
        use super::step::BucketStep::{Commit, Expire, Proceed, Raise, Tick};
        for node in 0..PAIR {
            let _ = self.take(Expire(node), rules);
            let _ = self.take(Commit(node), rules);
            let _ = self.take(Raise(node), rules);
            for _ in 0..REBUILD_STEPS {
                let _ = self.take(Proceed, rules);
            }
        }
        let _ = self.take(Tick, rules);
    }
}
