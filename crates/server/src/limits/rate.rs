//! The arithmetic of the generic cell rate algorithm (GCRA): a single number holds the used part of a rate.
//! The script `shared/gcra.lua` computes the same, and a test compares the two.

/// Microseconds of a minute, the period of nearly all rates.
const MINUTE: u64 = 60_000_000;

/// A rate: a burst at once, and a use per interval afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rate {
    pub(super) burst: u64,
    /// Microseconds between two uses at the steady pace.
    pub(super) interval: u64,
}

/// The decision on a use, with the state of the rate afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) passes: bool,
    /// The time of the decision, in microseconds.
    pub(super) now: u64,
    /// The time from which the rate is unused again, in microseconds.
    pub(super) busy_until: u64,
}

impl Rate {
    /// Returns the rate of `count` uses a minute; `None` for 0, which means no limit.
    pub(super) fn per_minute(count: u64) -> Option<Self> {
        (count > 0).then(|| Self { burst: count, interval: MINUTE.div_ceil(count) })
    }

    /// Returns the rate of `count` uses an hour. `count` must be positive.
    pub(super) const fn per_hour(count: u64) -> Self {
        Self { burst: count, interval: (60 * MINUTE).div_ceil(count) }
    }

    /// Decides if a use passes at `now`, with the rate in use until `busy_until`. A `busy_until` beyond a
    /// full burst stems from a clock that went back or from an earlier, lower rate, and is clamped to a full
    /// burst.
    pub(super) fn decide(self, now: u64, busy_until: u64) -> Verdict {
        let farthest = now + self.burst * self.interval;
        let busy_until = busy_until.clamp(now, farthest);
        let next = busy_until + self.interval;
        let passes = next <= farthest;
        Verdict { passes, now, busy_until: if passes { next } else { busy_until } }
    }

    /// Returns whether a use that passed found the rate unused.
    pub(super) fn is_first(self, verdict: Verdict) -> bool {
        verdict.passes && verdict.busy_until <= verdict.now + self.interval
    }

    /// Returns the number of further uses that pass at once.
    pub(super) fn remaining(self, verdict: Verdict) -> u64 {
        let used = verdict.busy_until.saturating_sub(verdict.now);
        (self.burst * self.interval).saturating_sub(used) / self.interval
    }

    /// Returns the microseconds until a further use passes.
    pub(super) fn wait(self, verdict: Verdict) -> u64 {
        (verdict.busy_until + self.interval).saturating_sub(verdict.now + self.burst * self.interval)
    }
}

#[cfg(test)]
mod tests;
