//! GCRA, the whole arithmetic of it: one number tells how much of a rate is used up. `shared/gcra.lua` is the same once
//! more, and a test holds it to this.

/// Microseconds of a minute, over which all rates are given.
const MINUTE: u64 = 60_000_000;

/// How often something may happen: so many at once, and then one after each interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rate {
    pub(super) burst: u64,
    /// Microseconds.
    pub(super) interval: u64,
}

/// How a rate stands after something happened, or was not let happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) passes: bool,
    /// When this was decided, in microseconds.
    pub(super) now: u64,
    /// When the rate will be unused again.
    pub(super) busy_until: u64,
}

impl Rate {
    /// So many a minute; none: as often as one likes.
    pub(super) fn per_minute(count: u64) -> Option<Self> {
        (count > 0).then(|| Self { burst: count, interval: MINUTE.div_ceil(count) })
    }

    /// Decides whether something may happen now, if the rate is used until `busy_until`. What lies farther ahead than it
    /// can get is of a clock that went back or of a rate that was lower, and counts as far as it can get.
    pub(super) fn decide(self, now: u64, busy_until: u64) -> Verdict {
        let farthest = now + self.burst * self.interval;
        let busy_until = busy_until.clamp(now, farthest);
        let next = busy_until + self.interval;
        let passes = next <= farthest;
        Verdict { passes, now, busy_until: if passes { next } else { busy_until } }
    }

    /// How many more may happen at once.
    pub(super) fn remaining(self, verdict: Verdict) -> u64 {
        let used = verdict.busy_until.saturating_sub(verdict.now);
        (self.burst * self.interval).saturating_sub(used) / self.interval
    }

    /// How long until one more may happen, in microseconds.
    pub(super) fn wait(self, verdict: Verdict) -> u64 {
        (verdict.busy_until + self.interval).saturating_sub(verdict.now + self.burst * self.interval)
    }
}

#[cfg(test)]
mod tests;
