//! The memory of the bucket in Redis, and the clock of Redis.

use super::rules::BucketRules;

/// Ticks of a bucket's lease: more than a breaker takes to open.
pub(super) const BUCKET_LEASE: u8 = 3;

/// Limit in ticks for a finish after the fill. The rest of a TTL outlasts a bucket's lease.
pub(super) const FINISH_MAX: u8 = TTL + 1 - BUCKET_LEASE;

/// Limit in ticks for the steps of a rebuild up to the fill: more than a rebuild of the model takes.
pub(super) const REBUILD_MAX: u8 = 9;

/// Ticks of a session's TTL. A heartbeat every tick and a bucket's lease fit in.
pub(super) const TTL: u8 = 4;

/// The bucket's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Head {
    Missing,
    Rebuilding { epoch: u8 },
    Serving { epoch: u8, identity: u8 },
}

/// A deadline on a clock that may be a decade ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Deadline {
    /// `true` if the clock was a decade ahead when the deadline was set.
    pub(super) is_far: bool,
    /// Ticks until the deadline, by the clock of the deadline.
    pub(super) left: u8,
}

impl Deadline {
    fn is_over(self, clock_is_far: bool) -> bool {
        self < Self { is_far: clock_is_far, left: 1 }
    }

    fn age(&mut self, clock_is_far: bool) {
        if self.is_far == clock_is_far && self.left != REBUILD_MAX {
            self.left = self.left.saturating_sub(1);
        }
    }

    /// Passes, if a clock of the same decade jumps. A jump is shorter than a rebuild may take.
    fn jump(&mut self, clock_is_far: bool) {
        if self.is_far == clock_is_far && self.left != REBUILD_MAX {
            self.left = 0;
        }
    }
}

/// The memory and the clock of Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Redis {
    pub(super) takes_writes: bool,
    /// The identity of the memory: changes when the memory is replaced.
    pub(super) identity: u8,
    pub(super) head: Head,
    pub(super) lease: Deadline,
    pub(super) session: Option<Deadline>,
    /// The epoch of an end in the journal that is not on record yet.
    pub(super) journaled_end: Option<u8>,
    /// The clock is a decade ahead.
    pub(super) clock_is_far: bool,
    /// The clock was set back, and has not caught up yet.
    pub(super) clock_stands: bool,
    /// The bucket's high-water mark is a decade ahead.
    pub(super) mark_is_far: bool,
}

impl Redis {
    /// Creates a Redis serving the first epoch, with a live session.
    pub(super) fn new(epoch: u8, identity: u8) -> Self {
        Self {
            takes_writes: true,
            identity,
            head: Head::Serving { epoch, identity },
            lease: Deadline { is_far: false, left: BUCKET_LEASE },
            session: Some(Deadline { is_far: false, left: TTL }),
            journaled_end: None,
            clock_is_far: false,
            clock_stands: false,
            mark_is_far: false,
        }
    }

    /// Returns `true` if the time for expiry, the later of clock and high-water mark, is a decade ahead.
    fn now_is_far(&self) -> bool {
        self.clock_is_far || self.mark_is_far
    }

    pub(super) fn is_leased(&self) -> bool {
        !self.lease.is_over(self.clock_is_far)
    }

    /// Returns `true` if a script serves the bucket for a node with the given epoch and identity.
    pub(super) fn serves(&self, epoch: u8, identity: u8, rules: &BucketRules) -> bool {
        let is_leased = self.is_leased() || !rules.bucket_lease;
        self.takes_writes && self.head == Head::Serving { epoch, identity } && is_leased
    }

    pub(super) fn has_live_session(&self) -> bool {
        self.session.is_some_and(|session| !session.is_over(self.now_is_far()))
    }

    /// Renews or restores the session.
    pub(super) fn renew_session(&mut self) {
        self.note_time();
        self.session = Some(Deadline { is_far: self.now_is_far(), left: TTL });
    }

    pub(super) fn renew_lease(&mut self, ticks: u8) {
        self.note_time();
        self.lease = Deadline { is_far: self.clock_is_far, left: ticks };
    }

    /// Ends the session if the TTL is over.
    pub(super) fn expire(&mut self, epoch: u8) -> Option<()> {
        (self.session.is_some() && !self.has_live_session()).then_some(())?;
        self.note_time();
        (self.session, self.journaled_end) = (None, Some(epoch));
        Some(())
    }

    /// Forgets the bucket.
    pub(super) fn forget(&mut self) {
        let over = Deadline { is_far: false, left: 0 };
        (self.head, self.lease, self.mark_is_far) = (Head::Missing, over, false);
        (self.session, self.journaled_end) = (None, None);
    }

    /// Passes a tick.
    pub(super) fn tick(&mut self) {
        if self.clock_stands {
            return;
        }
        self.lease.age(self.clock_is_far);
        // The time of sessions stands still while the clock is behind the high-water mark.
        let now_is_far = self.now_is_far();
        if let Some(session) = self.session.as_mut().filter(|_| self.clock_is_far == now_is_far) {
            session.age(now_is_far);
        }
    }

    /// Lets the clock jump by more than every lease and TTL, and by less than a rebuild may take.
    pub(super) fn jump(&mut self) {
        self.lease.jump(self.clock_is_far);
        let now_is_far = self.now_is_far();
        if let Some(session) = &mut self.session {
            session.jump(now_is_far);
        }
    }

    fn note_time(&mut self) {
        self.mark_is_far |= self.clock_is_far;
    }
}
