//! A tick: time passes for every party, and every node does its periodic work.

use super::node::{Node, Survey};
use super::redis::{BUCKET_LEASE, TTL};
use super::rules::BucketRules;
use super::state::{PAIR, Scene};

impl Scene {
    /// Passes a tick.
    pub(super) fn tick(&mut self, rules: &BucketRules) {
        self.redis.tick();
        self.standby.tick();
        self.holder.told_left = self.holder.told_left.saturating_sub(1);
        self.nodes.iter_mut().for_each(Node::tick);
        if let Some(rebuild) = &mut self.rebuild {
            (rebuild.has_waited, rebuild.is_due) = (true, true);
        }
        self.read_ledger_by_all();
        self.survey_by_all(rules);
        self.heartbeat_on_time(rules);
        self.renew_leases(rules);
    }

    fn read_ledger_by_all(&mut self) {
        // The roll is in Redis. A node that raises an epoch announces on the roll that the node reaches the
        // ledger.
        let all_answer = self.redis.takes_writes && self.nodes.iter().all(Node::hears_redis);
        let reached: [bool; PAIR] = std::array::from_fn(|node| self.reaches_ledger(node));
        let all_miss_ledger = reached == [false; PAIR] && self.rebuild.is_none();
        let (epoch, mode) = (self.epoch, self.mode);
        for (node, reaches_ledger) in self.nodes.iter_mut().zip(reached) {
            if reaches_ledger {
                node.read(epoch, mode);
            } else {
                node.miss_ledger(all_answer && all_miss_ledger);
            }
        }
    }

    fn survey_by_all(&mut self, rules: &BucketRules) {
        for node in 0..PAIR {
            if rules.identity_is_read_again {
                self.read_identity(node);
            }
            let survey = self.survey(node, rules);
            self.nodes[node].note_survey(survey);
        }
    }

    fn survey(&self, node: usize, rules: &BucketRules) -> Survey {
        if !self.reaches_redis(node, rules) || self.is_superseded(node) {
            Survey::Failed
        } else if self.network_is_bad && rules.recovery_is_quick {
            Survey::Slow
        } else {
            Survey::Quick
        }
    }

    /// Reads the identity of Redis, if Redis is reached.
    pub(super) fn read_identity(&mut self, node: usize) {
        let node = &mut self.nodes[node];
        if node.hears_redis() {
            node.identity = self.redis.identity;
        }
    }

    /// A client on time heartbeats once a tick, and tries node after node until a node answers.
    fn heartbeat_on_time(&mut self, rules: &BucketRules) {
        for node in 0..PAIR {
            if self.heartbeat(node, rules).is_some() {
                return;
            }
        }
    }

    /// Heartbeats at a node; `None` if the node does not renew the session.
    pub(super) fn heartbeat(&mut self, node: usize, rules: &BucketRules) -> Option<()> {
        self.holder.asks(node).then_some(())?;
        if self.serves_by_redis(node, rules) && self.redis.has_live_session() {
            self.redis.renew_session();
        } else if self.serves_by_standby(node, rules) && self.standby.session_left > 0 {
            self.standby.renew_session();
        } else {
            return None;
        }
        self.holder.told_left = TTL;
        Some(())
    }

    fn renew_leases(&mut self, rules: &BucketRules) {
        for node in 0..PAIR {
            let may_renew = self.nodes[node].may_answer(rules) || !rules.renewal_needs_epoch_lease;
            if may_renew && self.redis_takes_calls(node, rules) {
                self.redis.renew_lease(BUCKET_LEASE);
            }
            if self.serves_by_standby(node, rules) {
                self.standby.renew_lease();
            }
        }
    }
}
