//! Redis: its memory of the bucket, and its clock.

use super::rules::BucketRules;

/// Ticks of a bucket's lease.
pub(super) const BUCKET_LEASE: u8 = 2;

/// Ticks for the steps of a rebuild until it has filled the bucket: more than any rebuild here takes.
pub(super) const REBUILD_MAX: u8 = 9;

/// Ticks of a session's TTL. A heartbeat every tick and a bucket's lease fit in.
pub(super) const TTL: u8 = 3;

/// The bucket's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Head {
    Missing,
    Rebuilding { epoch: u8 },
    Serving { epoch: u8, identity: u8 },
}

/// A time in the future of a clock that may be a decade ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Deadline {
    /// The deadline was set by a clock that was a decade ahead.
    pub(super) is_far: bool,
    /// Ticks until the deadline, by the same clock.
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
    /// The identity of the memory: changes when another memory takes its place.
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
    /// Redis that serves the first epoch, with a live session.
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

    /// The time by which sessions expire: the clock, or the high-water mark if that is later.
    fn now_is_far(&self) -> bool {
        self.clock_is_far || self.mark_is_far
    }

    pub(super) fn is_leased(&self) -> bool {
        !self.lease.is_over(self.clock_is_far)
    }

    /// Checks that a script serves the bucket, for a node that knows this epoch and identity.
    pub(super) fn serves(&self, epoch: u8, identity: u8, rules: &BucketRules) -> bool {
        let is_leased = self.is_leased() || !rules.bucket_lease;
        self.takes_writes && self.head == Head::Serving { epoch, identity } && is_leased
    }

    pub(super) fn has_live_session(&self) -> bool {
        self.session.is_some_and(|session| !session.is_over(self.now_is_far()))
    }

    /// Renews the session, or puts it back.
    pub(super) fn renew_session(&mut self) {
        self.note_time();
        self.session = Some(Deadline { is_far: self.now_is_far(), left: TTL });
    }

    pub(super) fn renew_lease(&mut self, ticks: u8) {
        self.note_time();
        self.lease = Deadline { is_far: self.clock_is_far, left: ticks };
    }

    /// Ends the session if its TTL is over.
    pub(super) fn expire(&mut self, epoch: u8) -> Option<()> {
        (self.session.is_some() && !self.has_live_session()).then_some(())?;
        self.note_time();
        (self.session, self.journaled_end) = (None, Some(epoch));
        Some(())
    }

    /// Loses all memory of the bucket.
    pub(super) fn forget(&mut self) {
        let over = Deadline { is_far: false, left: 0 };
        (self.head, self.lease, self.mark_is_far) = (Head::Missing, over, false);
        (self.session, self.journaled_end) = (None, None);
    }

    /// Passes the time of one tick.
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
