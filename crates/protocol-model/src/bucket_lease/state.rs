//! The state of the model, and the queries of nodes on the state.

use super::node::{Mode, Node};
use super::rebuild::Rebuild;
use super::redis::{Head, Redis, TTL};
use super::rules::BucketRules;
use super::standby::Standby;

/// The number of nodes.
pub(super) const PAIR: usize = 2;

const FIRST_EPOCH: u8 = 1;
const FIRST_IDENTITY: u8 = 0;

/// The first holder of the seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Holder {
    /// `true` if the client heartbeats at the first node only, `false` if at any node.
    pub(super) is_captive: bool,
    pub(super) is_silent: bool,
    /// Ticks for which the client still believes in the session, by the latest answer.
    pub(super) told_left: u8,
}

impl Holder {
    pub(super) const ROAMING: Self = Self { is_captive: false, is_silent: false, told_left: TTL };
    pub(super) const CAPTIVE: Self = Self { is_captive: true, ..Self::ROAMING };

    pub(super) fn believes(self) -> bool {
        self.told_left > 0
    }

    pub(super) fn is_on_time(self) -> bool {
        !self.is_captive && !self.is_silent
    }

    /// Returns `true` if the client heartbeats at `node`.
    pub(super) fn asks(self, node: usize) -> bool {
        !self.is_silent && (node == 0 || !self.is_captive)
    }
}

/// The bucket from every party's point of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scene {
    /// The ledger's row of the bucket.
    pub(super) epoch: u8,
    pub(super) mode: Mode,
    pub(super) row_identity: u8,
    /// The session is on record as ended: the seat is free.
    pub(super) has_ended: bool,
    pub(super) postgres_is_down: bool,
    /// The network between the nodes and Redis loses some messages, and delays the rest.
    pub(super) network_is_bad: bool,
    pub(super) redis: Redis,
    pub(super) standby: Standby,
    pub(super) nodes: [Node; PAIR],
    pub(super) rebuild: Option<Rebuild>,
    pub(super) holder: Holder,
    pub(super) faults_left: u8,
}

impl Scene {
    pub(super) fn new(faults: u8, holder: Holder) -> Self {
        Self {
            epoch: FIRST_EPOCH,
            mode: Mode::Redis,
            row_identity: FIRST_IDENTITY,
            has_ended: false,
            postgres_is_down: false,
            network_is_bad: false,
            redis: Redis::new(FIRST_EPOCH, FIRST_IDENTITY),
            standby: Standby::UNUSED,
            nodes: [Node::new(FIRST_EPOCH, FIRST_IDENTITY); PAIR],
            rebuild: None,
            holder,
            faults_left: faults,
        }
    }

    pub(super) fn raises(&self) -> u8 {
        self.epoch - FIRST_EPOCH
    }

    pub(super) fn reaches_ledger(&self, node: usize) -> bool {
        self.nodes[node].has_ledger && !self.postgres_is_down
    }

    /// Returns `true` if a survey by `node` finds Redis reachable.
    pub(super) fn reaches_redis(&self, node: usize, rules: &BucketRules) -> bool {
        let node = &self.nodes[node];
        let takes_writes = self.redis.takes_writes || !rules.reach_is_a_write;
        node.hears_redis() && takes_writes && node.believes_clock(self.redis.clock_is_far, rules)
    }

    /// Returns `true` if Redis takes the calls of `node`, regardless of the node's right to answer.
    pub(super) fn redis_takes_calls(&self, node: usize, rules: &BucketRules) -> bool {
        let node = &self.nodes[node];
        node.mode == Mode::Redis && node.hears_redis() && self.redis.serves(node.epoch, node.identity, rules)
    }

    pub(super) fn serves_by_redis(&self, node: usize, rules: &BucketRules) -> bool {
        self.nodes[node].may_answer(rules) && self.redis_takes_calls(node, rules)
    }

    pub(super) fn serves_by_standby(&self, node: usize, rules: &BucketRules) -> bool {
        let Node { epoch, mode, .. } = self.nodes[node];
        let is_served = self.standby.served_epoch == epoch && self.standby.is_leased(rules);
        self.reaches_ledger(node) && (epoch, mode) == (self.epoch, Mode::Standby) && is_served
    }

    /// Returns `true` if some node renews the holder's session.
    pub(super) fn is_served(&self, rules: &BucketRules) -> bool {
        (0..PAIR).any(|node| {
            self.serves_by_redis(node, rules) && self.redis.has_live_session()
                || self.serves_by_standby(node, rules) && self.standby.session_left > 0
        })
    }

    pub(super) fn is_served_by_standby(&self, rules: &BucketRules) -> bool {
        (0..PAIR).any(|node| self.serves_by_standby(node, rules))
    }

    /// Returns `true` if Redis serves after a rebuild in PostgreSQL and a rebuild back in Redis.
    pub(super) fn has_returned(&self, rules: &BucketRules) -> bool {
        let serves = |node: usize| self.nodes[node].epoch == self.epoch && self.serves_by_redis(node, rules);
        self.standby.served_epoch > 0 && (0..PAIR).any(serves)
    }

    /// Returns `true` if Redis, as seen by `node`, serves the bucket according to the ledger's row.
    pub(super) fn is_in_order(&self, node: usize, rules: &BucketRules) -> bool {
        let identity = self.nodes[node].identity;
        let is_leased = self.redis.is_leased() || !rules.bucket_lease;
        self.redis.head == Head::Serving { epoch: self.epoch, identity }
            && identity == self.row_identity
            && is_leased
    }

    /// Returns `true` if Redis lacks a session that is live in the ledger: no session, and no journaled end.
    pub(super) fn is_suspect(&self) -> bool {
        self.redis.session.is_none() && self.redis.journaled_end.is_none()
    }

    /// Returns `true` if `node` reaches an old primary.
    pub(super) fn is_superseded(&self, node: usize) -> bool {
        let identity = self.nodes[node].identity;
        let epoch = match self.redis.head {
            Head::Missing => return false,
            Head::Rebuilding { epoch } => epoch,
            Head::Serving { epoch, identity: last_served } if last_served == identity => epoch,
            Head::Serving { .. } => return false,
        };
        epoch < self.epoch && identity != self.row_identity
    }

    /// Sorts the nodes, unless the client distinguishes them, to merge symmetric states.
    pub(super) fn sort_nodes(&mut self) {
        if !self.holder.is_captive && self.nodes[1] < self.nodes[0] {
            self.nodes.swap(0, 1);
            if let Some(rebuild) = &mut self.rebuild {
                rebuild.node = PAIR - 1 - rebuild.node;
            }
        }
    }
}
