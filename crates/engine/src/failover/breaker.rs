//! The circuit breaker of a bucket's registry. The breaker opens after a period of failures, and closes after a second of
//! quick answers or after a longer period without a failure. A single call never changes the state of a serving
//! registry.
//!
//! The thresholds differ (hysteresis). A network that loses and delays lets a probe through now and then: the bucket would
//! go back and forth between its registry and the fallback, two epochs each time. A slow answer therefore does not end a
//! period of failures, and a second with a slow answer closes no breaker.

use std::time::{Duration, Instant};

/// The times and the numbers of failed probes, with no quick answer in between, that open the breaker.
///
/// A server that refuses writes fails five probes in 3 s, and a silent server in 5 s. A network that loses and delays
/// fails about half of the probes. Such a network delays heartbeats as well, so the fewer failures of 5 s are enough.
const OPENS_AFTER: [(Duration, u32); 2] = [(Duration::from_secs(3), 5), (Duration::from_secs(5), 3)];

/// The longest time for a series of failures. A distant server that is always slow may fail a probe now and then.
const FAILURES_WITHIN: Duration = Duration::from_secs(20);

/// The breaker closes when every probe was answered quickly for this time: three probes.
const CLOSES_AFTER: Duration = Duration::from_secs(1);

/// The breaker also closes when every probe was answered, though slowly, for this time: a distant server, or a machine
/// that is overloaded. A network that loses three of ten segments fails a probe much sooner.
const CLOSES_SLOWLY_AFTER: Duration = Duration::from_secs(10);

/// The longest latency of a quick answer. A healthy server in the nodes' region answers a survey within some
/// milliseconds, and nine surveys of ten within 140 ms on a machine with twelve runnable tasks for each processor. The
/// round trip of a slow network takes longer, and so does a segment that TCP lost twice.
const QUICK_MAX: Duration = Duration::from_millis(250);

/// The result of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProbeResult {
    /// The server answered within [`QUICK_MAX`].
    Quick,
    /// The server answered before the probe's timeout.
    Slow,
    /// The server did not answer in time, or refused the probe.
    Failed,
}

impl ProbeResult {
    /// Returns the result of a probe answered after `latency`.
    pub(super) fn from_latency(latency: Duration) -> Self {
        if latency <= QUICK_MAX { Self::Quick } else { Self::Slow }
    }
}

/// The state of one circuit breaker.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Breaker {
    /// The instant since which the breaker is open; `None` if it is closed.
    open_since: Option<Instant>,
    /// A single failed probe during a fallback opened the breaker.
    is_only_doubt: bool,
    /// The present series of failed probes.
    failing: Option<Series>,
    /// The present series of quick answers, while the breaker is open.
    recovering: Option<Series>,
    /// The instant since which every probe was answered, while the breaker is open.
    answered_since: Option<Instant>,
}

/// A series of probes with the same result.
#[derive(Clone, Copy, Debug)]
struct Series {
    since: Instant,
    probes: u32,
}

impl Breaker {
    /// Returns whether the registry counts as unreachable.
    pub(super) fn is_open(&self) -> bool {
        self.open_since.is_some()
    }

    /// Returns whether the breaker has been open for `time` at `now`.
    pub(super) fn has_been_open(&self, time: Duration, now: Instant) -> bool {
        self.open_since.is_some_and(|since| now.duration_since(since) >= time)
    }

    /// Notes the result of a probe that took from `began` to `now`. Returns whether the breaker opened or closed.
    ///
    /// `is_in_fallback`: the bucket has left the registry, and a return needs a registry that is well. The first failed
    /// probe opens the breaker, so that this node does not vote for a return. The breaker then closes once the bucket
    /// has returned by the votes of the other nodes: otherwise a single probe would be a vote to leave the registry again.
    pub(super) fn note(
        &mut self,
        result: ProbeResult,
        is_in_fallback: bool,
        began: Instant,
        now: Instant,
    ) -> bool {
        let was_open = self.is_open();
        if self.is_only_doubt && !is_in_fallback {
            *self = Self::default();
        }
        if self.fails(result, began, now) {
            let open_since = self.open_since.or(Some(now));
            *self = Self { open_since, failing: self.failing, ..Self::default() };
        } else if self.is_open() && self.recovers(result, now) {
            *self = Self::default();
        } else if !self.is_open() && is_in_fallback && result == ProbeResult::Failed {
            (self.open_since, self.is_only_doubt) = (Some(now), true);
        }
        self.is_open() != was_open
    }

    /// Notes a probe while the breaker is open. Returns whether the series of answers closes the breaker.
    fn recovers(&mut self, result: ProbeResult, now: Instant) -> bool {
        if result == ProbeResult::Failed {
            self.answered_since = None;
        } else if now.duration_since(*self.answered_since.get_or_insert(now)) >= CLOSES_SLOWLY_AFTER {
            return true;
        }
        if result != ProbeResult::Quick {
            self.recovering = None;
            return false;
        }
        let series = self.recovering.get_or_insert(Series { since: now, probes: 0 });
        series.probes += 1;
        now.duration_since(series.since) >= CLOSES_AFTER
    }

    /// Notes a probe. Returns whether the series of failures opens the breaker, or keeps the breaker open.
    fn fails(&mut self, result: ProbeResult, began: Instant, now: Instant) -> bool {
        let is_old = |series: Series| now.duration_since(series.since) > FAILURES_WITHIN;
        if result == ProbeResult::Quick || self.failing.is_some_and(is_old) {
            self.failing = None;
        }
        if result != ProbeResult::Failed {
            return false;
        }
        // A silent server fails a probe only after a while, and was out of reach from the start.
        let series = self.failing.get_or_insert(Series { since: began, probes: 0 });
        series.probes += 1;
        let (time, failures) = (now.duration_since(series.since), series.probes);
        OPENS_AFTER.iter().any(|(after, failures_min)| time >= *after && failures >= *failures_min)
    }
}

#[cfg(test)]
mod tests;
