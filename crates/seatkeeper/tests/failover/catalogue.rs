//! The catalogue of faults: for each test of a fault, the promises to clients. The table in
//! `docs/operations.md` is generated from the catalogue. A new fault is an entry beside its kin in
//! `entries`.

mod entries;
mod page;
mod watch;

use std::time::Duration;

use super::steady::{Gap, Gaps};
pub(crate) use watch::Watch;

/// The resolution of a measured lapse: a client's pause before a retry, and the time of an answer.
const GRAIN: Duration = Duration::from_millis(500);

/// A fault, and its effects on clients. Clients try the nodes in turn, as behind a load balancer.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) title: &'static str,
    /// The name of the test that causes the fault.
    pub(crate) test: &'static str,
    /// The effects on licenses, devices and capacities.
    pub(crate) effects: [Effect; 3],
    /// The most raises of a bucket's epoch, the way back included.
    pub(crate) epochs_max: u64,
    /// The consequences that heal without an operator.
    pub(crate) heals: &'static str,
    /// The action of an operator.
    pub(crate) remedy: &'static str,
}

/// The effect of a fault on one kind of pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Effect {
    pub(crate) admissions: Lapse,
    pub(crate) heartbeats: Lapse,
    /// The longest lapse after the end of the fault, in seconds.
    pub(crate) afterwards: u64,
}

/// The time during a fault in which requests get a 503 or no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lapse {
    /// Requests are served throughout, though a client may have to try another node.
    Nothing,
    /// Requests are served again after at most this many seconds.
    UpTo(u64),
    /// Requests are served once the fault is over.
    WhileItLasts,
    /// Requests to the pools of one master of a Redis Cluster are served once the fault is over.
    OneMasterWhileItLasts,
}

impl Fault {
    /// Returns the fault caused by `test`.
    pub(crate) fn tried_by(test: &str) -> &'static Self {
        let found = entries::faults().find(|fault| fault.test == test);
        found.unwrap_or_else(|| panic!("{test} is not in the catalogue"))
    }
}

impl Effect {
    /// Returns a message if a promise was broken by lapses of these lengths, during a fault of length
    /// `lasted` and after it. On a busy machine everything takes `stretch` times as long. A fault without its
    /// effect in the catalogue counts as a broken promise: its test shows nothing.
    fn broken_by(self, during: Gaps, after: Gaps, lasted: Duration, stretch: f64) -> Option<String> {
        let took_effect = |lapse: Lapse, gap: Gap| lapse != Lapse::WhileItLasts || 2 * gap.silence >= lasted;
        let within =
            |lapse: Lapse, gap: Gap| lapse.longest(stretch).is_none_or(|longest| gap.waiting <= longest);
        let afterwards = Lapse::UpTo(self.afterwards);
        let kept = took_effect(self.admissions, during.admissions)
            && took_effect(self.heartbeats, during.heartbeats)
            && within(self.admissions, during.admissions)
            && within(self.heartbeats, during.heartbeats)
            && within(afterwards, after.admissions)
            && within(afterwards, after.heartbeats);
        (!kept).then(|| format!("{self:?} was promised; during the fault: {during:?}, after it: {after:?}"))
    }

    /// Returns a message if a single request waited longer after the fault than promised.
    fn is_slow_afterwards(self, longest: Duration, stretch: f64) -> Option<String> {
        let promised = Lapse::UpTo(self.afterwards).longest(stretch)?;
        (longest > promised).then(|| format!("a request was answered {longest:?} after the fault"))
    }

    /// Returns a message if a session that began during the fault waited longer than promised for its first
    /// heartbeat after the fault.
    fn late_sessions_wait_too_long(self, longest: Duration, stretch: f64) -> Option<String> {
        let promised = Lapse::UpTo(self.afterwards).longest(stretch)?;
        (longest > promised).then(|| format!("a session of the fault was renewed after {longest:?}"))
    }
}

impl Lapse {
    /// Returns the longest lapse accepted by a test; `None` for no limit.
    fn longest(self, stretch: f64) -> Option<Duration> {
        let promised = match self {
            Self::Nothing => Duration::from_secs(1),
            Self::UpTo(seconds) => Duration::from_secs(seconds),
            Self::WhileItLasts | Self::OneMasterWhileItLasts => return None,
        };
        Some(promised.mul_f64(stretch) + GRAIN)
    }
}

#[test]
fn a_promise_is_broken_by_any_lapse_that_is_too_long() {
    const LASTED: Duration = Duration::from_secs(10);
    let effect = Effect { admissions: Lapse::UpTo(4), heartbeats: Lapse::Nothing, afterwards: 2 };
    let gap = |tenths: u64| {
        let length = Duration::from_millis(100 * tenths);
        Gap { waiting: length, silence: length }
    };
    let gaps = |admissions, heartbeats| Gaps { admissions: gap(admissions), heartbeats: gap(heartbeats) };
    assert_eq!(effect.broken_by(gaps(45, 15), gaps(25, 25), LASTED, 1.0), None);
    for (during, after) in [
        (gaps(46, 15), gaps(25, 25)),
        (gaps(45, 16), gaps(25, 25)),
        (gaps(45, 15), gaps(26, 25)),
        (gaps(45, 15), gaps(25, 26)),
    ] {
        assert!(effect.broken_by(during, after, LASTED, 1.0).is_some(), "{during:?} {after:?}");
    }
    assert_eq!(effect.late_sessions_wait_too_long(Duration::from_millis(2_500), 1.0), None);
    assert!(effect.late_sessions_wait_too_long(Duration::from_millis(2_600), 1.0).is_some());
    assert_eq!(effect.is_slow_afterwards(Duration::from_millis(2_500), 1.0), None);
    assert!(effect.is_slow_afterwards(Duration::from_millis(2_600), 1.0).is_some());
    assert_eq!(effect.broken_by(gaps(85, 25), gaps(45, 45), LASTED, 2.0), None);
    assert!(effect.broken_by(gaps(86, 25), gaps(45, 45), LASTED, 2.0).is_some());
    let idle = Gap { waiting: Duration::ZERO, silence: LASTED };
    assert_eq!(effect.broken_by(Gaps { admissions: idle, ..gaps(0, 15) }, gaps(25, 25), LASTED, 1.0), None);
    let effect = Effect { admissions: Lapse::WhileItLasts, ..effect };
    assert_eq!(effect.broken_by(gaps(1_000, 15), gaps(25, 25), LASTED, 1.0), None);
    assert!(effect.broken_by(gaps(40, 15), gaps(25, 25), LASTED, 1.0).is_some(), "the fault had no effect");
}
