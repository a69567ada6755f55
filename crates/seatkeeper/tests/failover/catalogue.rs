//! The catalogue of faults and of the promises that each test holds the nodes to. The table in `docs/operations.md` is
//! generated from it.

mod entries;
mod page;
mod watch;

use std::time::Duration;

use super::steady::Gaps;
pub(crate) use watch::Watch;

/// Time that a busy machine may add to a promise, besides doubling it.
const GRAIN: Duration = Duration::from_secs(1);

/// A fault, and what clients see of it. Clients try one node after the other, as behind a load balancer.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) title: &'static str,
    /// The name of the test that brings the fault about.
    pub(crate) test: &'static str,
    /// Of licenses, devices and capacities.
    pub(crate) effects: [Effect; 3],
    /// The most times that a bucket's epoch is raised, the way back included.
    pub(crate) epochs_max: u64,
    /// The consequences that heal without an operator.
    pub(crate) heals: &'static str,
}

/// The effect of a fault on one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Effect {
    pub(crate) admissions: Lapse,
    pub(crate) heartbeats: Lapse,
    /// The longest lapse, in seconds, once the fault is over.
    pub(crate) afterwards: u64,
}

/// The time for which requests get a 503, or no answer, while a fault lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lapse {
    /// Requests are served throughout; a client may have to try another node.
    Nothing,
    /// Requests are served again after so many seconds at most.
    UpTo(u64),
    /// Requests are served when the fault is over.
    WhileItLasts,
}

impl Fault {
    /// Returns the fault of a test.
    pub(crate) fn tried_by(test: &str) -> &'static Self {
        let found = entries::FAULTS.iter().find(|fault| fault.test == test);
        found.unwrap_or_else(|| panic!("{test} is not in the catalogue"))
    }
}

impl Effect {
    /// Says which promise was broken by lapses of these lengths, during a fault that lasted for `lasted` and after it, on a
    /// machine on which everything takes `stretch` times as long. A fault without the effect that the catalogue names was
    /// no fault: a test of it shows nothing.
    fn broken_by(self, during: Gaps, after: Gaps, lasted: Duration, stretch: f64) -> Option<String> {
        let took_effect = |lapse: Lapse, gap: Duration| lapse != Lapse::WhileItLasts || 2 * gap >= lasted;
        let within =
            |lapse: Lapse, gap: Duration| lapse.longest(stretch).is_none_or(|longest| gap <= longest);
        let afterwards = Lapse::UpTo(self.afterwards);
        let kept = took_effect(self.admissions, during.admissions)
            && took_effect(self.heartbeats, during.heartbeats)
            && within(self.admissions, during.admissions)
            && within(self.heartbeats, during.heartbeats)
            && within(afterwards, after.admissions)
            && within(afterwards, after.heartbeats);
        (!kept).then(|| format!("{self:?} was promised; during the fault: {during:?}, after it: {after:?}"))
    }
}

impl Lapse {
    /// Returns the longest lapse that a test accepts; `None` accepts any.
    fn longest(self, stretch: f64) -> Option<Duration> {
        let promised = match self {
            Self::Nothing => Duration::from_secs(1),
            Self::UpTo(seconds) => Duration::from_secs(seconds),
            Self::WhileItLasts => return None,
        };
        Some((2 * promised).mul_f64(stretch) + GRAIN)
    }
}

#[test]
fn a_promise_is_broken_by_any_lapse_that_is_too_long() {
    const LASTED: Duration = Duration::from_secs(10);
    let effect = Effect { admissions: Lapse::UpTo(4), heartbeats: Lapse::Nothing, afterwards: 2 };
    let gaps = |admissions, heartbeats| Gaps {
        admissions: Duration::from_secs(admissions),
        heartbeats: Duration::from_secs(heartbeats),
    };
    assert_eq!(effect.broken_by(gaps(9, 3), gaps(5, 5), LASTED, 1.0), None);
    for (during, after) in [
        (gaps(10, 3), gaps(5, 5)),
        (gaps(9, 4), gaps(5, 5)),
        (gaps(9, 3), gaps(6, 5)),
        (gaps(9, 3), gaps(5, 6)),
    ] {
        assert!(effect.broken_by(during, after, LASTED, 1.0).is_some(), "{during:?} {after:?}");
    }
    assert_eq!(effect.broken_by(gaps(17, 5), gaps(9, 9), LASTED, 2.0), None);
    assert!(effect.broken_by(gaps(18, 5), gaps(9, 9), LASTED, 2.0).is_some());
    let effect = Effect { admissions: Lapse::WhileItLasts, ..effect };
    assert_eq!(effect.broken_by(gaps(1_000, 3), gaps(5, 5), LASTED, 1.0), None);
    assert!(effect.broken_by(gaps(4, 3), gaps(5, 5), LASTED, 1.0).is_some(), "the fault had no effect");
}
