//! The need of a rebuild, and the numbered steps of `docs/failover.md`.

use super::node::{Mode, Node};
use super::rebuild::{Rebuild, Stage};
use super::redis::{BUCKET_LEASE, Deadline, FINISH_MAX, Head, REBUILD_MAX};
use super::rules::BucketRules;
use super::state::Scene;

impl Scene {
    /// Returns the registry in which the node wants to rebuild the bucket, `None` if the bucket is in order.
    pub(super) fn need(&self, node: usize, rules: &BucketRules) -> Option<Mode> {
        let live = || self.nodes.iter().filter(|node| node.is_live());
        let open = live().filter(|node| node.breaker.is_open).count();
        let (is_cut, is_back) = (open * 2 > live().count(), open * 2 < live().count());
        let is_reached = self.reaches_redis(node, rules);
        match self.mode {
            Mode::Redis if is_cut => Some(Mode::Standby),
            Mode::Redis if !is_reached || self.is_superseded(node) => None,
            // Redis has just come back, and may go again.
            Mode::Redis if self.nodes[node].breaker.is_open => None,
            Mode::Redis => {
                let is_well = self.is_in_order(node, rules) && !self.is_suspect();
                (!is_well).then_some(Mode::Redis)
            }
            Mode::Standby if is_back && is_reached => Some(Mode::Redis),
            Mode::Standby => {
                let is_well = self.standby.served_epoch == self.epoch && self.standby.is_leased(rules);
                (!is_well).then_some(Mode::Standby)
            }
        }
    }

    /// 1 and 2: takes the lock, looks again, and raises the epoch.
    pub(super) fn raise(&mut self, node: usize, rules: &BucketRules) -> Option<()> {
        (self.reaches_ledger(node) && self.rebuild.is_none()).then_some(())?;
        self.nodes[node].read(self.epoch, self.mode);
        let target = self.need(node, rules)?;
        self.epoch += 1;
        self.mode = target;
        if target == Mode::Redis {
            self.row_identity = self.nodes[node].identity;
        }
        self.rebuild = Some(Rebuild {
            node,
            epoch: self.epoch,
            target,
            identity: self.nodes[node].identity,
            survey_is_far: self.redis.clock_is_far,
            stage: Stage::Raised,
            has_waited: false,
            is_due: false,
            is_frozen: false,
        });
        Some(())
    }

    /// Takes the next step of the rebuild. A refused step aborts the rebuild.
    pub(super) fn proceed(&mut self, rules: &BucketRules) -> Option<()> {
        let rebuild = self.rebuild?;
        let waits = rebuild.stage == Stage::Begun && !rebuild.has_waited;
        if waits || self.repeats_step(rebuild, rules) {
            return None;
        }
        let taken = match (rebuild.stage, rebuild.target) {
            (Stage::Raised, Mode::Redis) => self.begin_in_redis(rebuild, rules),
            (Stage::Raised, Mode::Standby) => self.begin_in_standby(rebuild, rules),
            (Stage::Begun, _) => self.fill(rebuild, rules),
            (Stage::Filled, Mode::Redis) => self.finish_in_redis(rebuild, rules),
            (Stage::Filled, Mode::Standby) => self.finish_in_standby(rebuild, rules),
        };
        let next = match rebuild.stage {
            Stage::Raised => Some(Stage::Begun),
            Stage::Begun => Some(Stage::Filled),
            Stage::Filled => None,
        };
        self.rebuild =
            taken.and(next).map(|stage| Rebuild { stage, is_due: false, is_frozen: false, ..rebuild });
        Some(())
    }

    /// 3: Redis stops serving.
    fn begin_in_redis(&mut self, rebuild: Rebuild, rules: &BucketRules) -> Option<()> {
        let jumped = self.redis.clock_is_far != rebuild.survey_is_far && rules.begin_checks_clock;
        (self.is_writable_by(rebuild) && !jumped).then_some(())?;
        self.redis.head = Head::Rebuilding { epoch: rebuild.epoch };
        self.redis.lease = Deadline { is_far: self.redis.clock_is_far, left: REBUILD_MAX };
        Some(())
    }

    /// 3: PostgreSQL stops serving, and so does a reachable Redis.
    fn begin_in_standby(&mut self, rebuild: Rebuild, rules: &BucketRules) -> Option<()> {
        self.reaches_ledger(rebuild.node).then_some(())?;
        self.standby.served_epoch = 0;
        // An unreachable Redis is no source.
        let _ = self.begin_in_redis(rebuild, rules);
        Some(())
    }

    /// 5 and 6: brings the journal to the ledger, and puts the session back.
    fn fill(&mut self, rebuild: Rebuild, rules: &BucketRules) -> Option<()> {
        let Rebuild { node, epoch, target, .. } = rebuild;
        self.reaches_ledger(node).then_some(())?;
        let is_begun = self.redis.head == (Head::Rebuilding { epoch });
        if is_begun && self.redis.journaled_end == Some(epoch - 1) {
            (self.has_ended, self.redis.journaled_end) = (true, None);
            return Some(());
        }
        match target {
            Mode::Redis => {
                (self.is_writable_by(rebuild) && is_begun && self.redis.is_leased()).then_some(())?;
                self.redis.journaled_end = None;
                if rules.rebuild_renews_ttl || self.redis.session.is_none() {
                    self.redis.renew_session();
                }
                if rules.finish_follows_fill {
                    self.redis.renew_lease(FINISH_MAX);
                }
            }
            Mode::Standby => {
                self.standby.renew_session();
                self.standby.renew_lease();
            }
        }
        Some(())
    }

    /// 7: Redis serves, if its memory is still the memory named by the row.
    fn finish_in_redis(&mut self, rebuild: Rebuild, rules: &BucketRules) -> Option<()> {
        let Rebuild { node, epoch, .. } = rebuild;
        let is_begun = self.redis.head == (Head::Rebuilding { epoch });
        (self.is_writable_by(rebuild) && is_begun && self.redis.is_leased()).then_some(())?;
        if rules.identity_is_read_again {
            self.read_identity(node);
            (self.redis.identity == rebuild.identity).then_some(())?;
        }
        self.redis.head = Head::Serving { epoch, identity: rebuild.identity };
        self.redis.renew_lease(BUCKET_LEASE);
        Some(())
    }

    /// 7: PostgreSQL serves.
    fn finish_in_standby(&mut self, rebuild: Rebuild, rules: &BucketRules) -> Option<()> {
        let is_in_time = self.standby.lease_left > 0 || !rules.finish_follows_fill;
        (self.reaches_ledger(rebuild.node) && is_in_time).then_some(())?;
        self.standby.served_epoch = rebuild.epoch;
        self.standby.renew_lease();
        Some(())
    }

    fn is_writable_by(&self, Rebuild { node, .. }: Rebuild) -> bool {
        self.nodes[node].hears_redis() && self.redis.takes_writes
    }

    /// Returns `true` if the rebuild repeats a step that Redis has not answered: until the breaker of the node is
    /// open, or another mode is needed.
    pub(super) fn repeats_step(&self, rebuild: Rebuild, rules: &BucketRules) -> bool {
        let Rebuild { node, target, .. } = rebuild;
        let Node { loses, breaker, .. } = self.nodes[node];
        let demands_other_mode = self.need(node, rules).is_some_and(|mode| mode != target);
        loses && target == Mode::Redis && !breaker.is_open && !demands_other_mode
    }
}
