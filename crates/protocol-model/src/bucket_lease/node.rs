//! A node: its links, and its knowledge of the bucket.

use super::rules::BucketRules;

/// Ticks of an epoch lease.
pub(super) const EPOCH_LEASE: u8 = 1;

/// Ticks for which a node seen in the ledger counts as live.
const LIVE: u8 = 2;

/// Ticks of failed, or of quick, surveys after which a breaker opens, or closes.
const BREAKER: u8 = 2;

/// Ticks until a jumped clock is trusted.
const CLOCK_SETTLES: u8 = 1;

/// The registry in charge of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Mode {
    Redis,
    Standby,
}

/// The circuit breaker of a node for the bucket's server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Breaker {
    pub(super) is_open: bool,
    /// Consecutive ticks of surveys against the breaker's state.
    against: u8,
}

/// The result of a survey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Survey {
    Quick,
    Slow,
    Failed,
}

impl Breaker {
    fn note(&mut self, survey: Survey, is_in_fallback: bool) {
        let is_against = if self.is_open { Survey::Quick } else { Survey::Failed };
        if survey == is_against {
            self.against += 1;
        } else if self.is_open || survey == Survey::Quick {
            self.against = 0;
        }
        let closes_no_more = !self.is_open && is_in_fallback && survey != Survey::Quick;
        if self.against == BREAKER || closes_no_more {
            *self = Self { is_open: !self.is_open, against: 0 };
        }
    }
}

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Node {
    pub(super) has_ledger: bool,
    pub(super) has_redis: bool,
    /// The present messages between the node and Redis are lost, by a network that loses some.
    pub(super) loses: bool,
    /// The epoch and the mode of the last reading of the ledger.
    pub(super) epoch: u8,
    pub(super) mode: Mode,
    pub(super) vouched_ago: u8,
    has_lapsed: bool,
    seen_ago: u8,
    /// The identity of Redis by the last reading.
    pub(super) identity: u8,
    /// Ticks until the node believes the clock of Redis again.
    clock_doubted: u8,
    pub(super) breaker: Breaker,
}

impl Node {
    pub(super) fn new(epoch: u8, identity: u8) -> Self {
        Self {
            has_ledger: true,
            has_redis: true,
            loses: false,
            epoch,
            mode: Mode::Redis,
            vouched_ago: 0,
            has_lapsed: false,
            seen_ago: 0,
            identity,
            clock_doubted: 0,
            breaker: Breaker::default(),
        }
    }

    /// Returns `true` if the epoch lease holds.
    pub(super) fn may_answer(&self, rules: &BucketRules) -> bool {
        !rules.epoch_lease_ends || !self.has_lapsed && self.vouched_ago < EPOCH_LEASE
    }

    pub(super) fn is_live(&self) -> bool {
        self.seen_ago < LIVE
    }

    pub(super) fn believes_clock(&self, clock_is_far: bool, rules: &BucketRules) -> bool {
        !rules.clock_must_settle || self.clock_doubted == 0 && !clock_is_far
    }

    pub(super) fn doubt_clock(&mut self) {
        self.clock_doubted = CLOCK_SETTLES;
    }

    /// Reads the ledger, which also shows the node as live.
    pub(super) fn read(&mut self, epoch: u8, mode: Mode) {
        (self.epoch, self.mode) = (epoch, mode);
        (self.vouched_ago, self.has_lapsed, self.seen_ago) = (0, false, 0);
    }

    /// Continues without the ledger: by the word of the remaining nodes, or until the epoch lease lapses.
    pub(super) fn miss_ledger(&mut self, others_vouch: bool) {
        if others_vouch && !self.has_lapsed {
            self.vouched_ago = 0;
        } else if self.vouched_ago >= EPOCH_LEASE {
            self.has_lapsed = true;
        }
    }

    pub(super) fn tick(&mut self) {
        self.vouched_ago = EPOCH_LEASE.min(self.vouched_ago + 1);
        self.seen_ago = LIVE.min(self.seen_ago + 1);
        if self.hears_redis() {
            self.clock_doubted = self.clock_doubted.saturating_sub(1);
        }
    }

    /// Returns `true` if messages between the node and Redis arrive.
    pub(super) fn hears_redis(&self) -> bool {
        self.has_redis && !self.loses
    }

    pub(super) fn note_survey(&mut self, survey: Survey) {
        self.breaker.note(survey, self.mode == Mode::Standby);
    }
}
