//! Counts how many of the latest heartbeats reached PostgreSQL in time.
//!
//! A session may expire only while its holder can heartbeat. A network that loses and delays lets a short
//! reading of the clock through now and then, while heartbeats fail: then this node must not prolong the
//! clock's lease (`postgres/clock.rs`).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// A heartbeat that takes longer did not get through. On a network that loses three of ten segments and delays each by
/// 200 ms, half of the heartbeats take longer, and four of five are written within 1 s.
const WRITTEN_WITHIN: Duration = Duration::from_millis(500);

/// Heartbeats that begin within this span are counted together.
const SLOT: Duration = Duration::from_millis(250);

/// Latest heartbeats that are judged together.
#[derive(Clone, Copy)]
struct Judged {
    /// Number of the heartbeats.
    count: u32,
    /// Older heartbeats are not judged.
    age_max: Duration,
}

/// Each of the verdicts must be good. Clients wait for their answers, so a node gets few heartbeats during a fault, and the
/// latest 32 reach back to healthy times for ten seconds: the latest 8 notice the fault at its beginning, and with few
/// clients the latest 5 s do. Of so few heartbeats alone, three nodes on a lossy network would find a lucky run in every
/// lease of the clock.
const JUDGED: [Judged; 3] = [
    Judged { count: 8, age_max: Duration::from_secs(5) },
    Judged { count: 8, age_max: JUDGED_AGE_MAX },
    Judged { count: 32, age_max: JUDGED_AGE_MAX },
];

/// Heartbeats older than this are not judged.
const JUDGED_AGE_MAX: Duration = Duration::from_secs(30);

/// Share of the judged heartbeats that must get through. An overloaded server is late with some of them, and must not stop
/// registry time. Of a thousand sessions on a network that loses a quarter of four attempts, four would expire.
const WRITTEN_MIN: (u32, u32) = (3, 4);

/// The latest heartbeats of this node.
#[derive(Debug)]
pub(super) struct HeartbeatFlow {
    started: Instant,
    slots: Mutex<VecDeque<Slot>>,
}

/// The heartbeats that began within a span of [`SLOT`].
#[derive(Debug)]
struct Slot {
    /// Number of the slot since [`HeartbeatFlow::started`].
    number: u128,
    begun: u32,
    /// Heartbeats written within [`WRITTEN_WITHIN`].
    written: u32,
}

/// A heartbeat in progress. A heartbeat dropped early was cancelled by its caller or not served, and does not count.
pub(super) struct HeartbeatInFlight<'a> {
    flow: &'a HeartbeatFlow,
    began: Instant,
    /// Number of the slot that counts the heartbeat.
    slot: u128,
    is_over: bool,
}

impl HeartbeatFlow {
    /// Creates an empty count.
    pub(super) fn new() -> Self {
        Self { started: Instant::now(), slots: Mutex::default() }
    }

    /// Counts a heartbeat that begins now.
    pub(super) fn begin(&self) -> HeartbeatInFlight<'_> {
        self.begin_at(Instant::now())
    }

    /// Returns whether [`WRITTEN_MIN`] of the heartbeats of each of [`JUDGED`] got through. Returns true without heartbeats.
    pub(super) fn gets_through(&self) -> bool {
        self.gets_through_at(Instant::now())
    }

    fn begin_at(&self, began: Instant) -> HeartbeatInFlight<'_> {
        let number = self.number(began);
        let mut slots = self.slots.lock();
        while slots.front().is_some_and(|slot| slot.number + slots_in(JUDGED_AGE_MAX) < number) {
            slots.pop_front();
        }
        // Threads may come out of order: a heartbeat of an earlier slot counts in the latest slot.
        let latest = slots.back().map(|slot| slot.number).filter(|latest| *latest >= number);
        let slot = latest.unwrap_or_else(|| {
            slots.push_back(Slot { number, begun: 0, written: 0 });
            number
        });
        change(&mut slots, slot, |slot| slot.begun += 1);
        HeartbeatInFlight { flow: self, began, slot, is_over: false }
    }

    fn gets_through_at(&self, now: Instant) -> bool {
        JUDGED.iter().all(|judged| self.get_through_at(now, *judged))
    }

    fn get_through_at(&self, now: Instant, judged: Judged) -> bool {
        // Younger heartbeats are still undecided.
        let judged_until = self.number(now).saturating_sub(slots_in(WRITTEN_WITHIN));
        let judged_from = self.number(now).saturating_sub(slots_in(judged.age_max));
        let (mut begun, mut written) = (0, 0);
        for slot in self.slots.lock().iter().rev().filter(|slot| slot.number < judged_until) {
            if begun >= judged.count || slot.number < judged_from {
                break;
            }
            begun += slot.begun;
            written += slot.written;
        }
        let (part, whole) = WRITTEN_MIN;
        whole * written >= part * begun
    }

    fn number(&self, at: Instant) -> u128 {
        at.saturating_duration_since(self.started).as_millis() / SLOT.as_millis()
    }
}

/// Returns the number of slots in a span.
const fn slots_in(span: Duration) -> u128 {
    span.as_millis() / SLOT.as_millis()
}

/// Changes the slot of this number, unless the slot is too old to be kept.
fn change(slots: &mut VecDeque<Slot>, number: u128, change: impl FnOnce(&mut Slot)) {
    if let Some(slot) = slots.iter_mut().rev().find(|slot| slot.number == number) {
        change(slot);
    }
}

impl HeartbeatInFlight<'_> {
    /// Notes that PostgreSQL answered the heartbeat.
    pub(super) fn written(self) {
        self.written_at(Instant::now());
    }

    /// Notes that the heartbeat failed.
    pub(super) fn failed(mut self) {
        self.is_over = true;
    }

    /// Notes that PostgreSQL does not serve the session's bucket. No session of such a bucket can expire, and each gets a
    /// full TTL before the bucket serves, so an answer within [`WRITTEN_WITHIN`] does not count. Clients retry at a
    /// fallback until PostgreSQL serves: with few sessions, these heartbeats would be the latest for longer than the
    /// clock's lease.
    pub(super) fn not_served(self) {
        drop(self);
    }

    fn written_at(mut self, now: Instant) {
        self.is_over = true;
        if now.saturating_duration_since(self.began) <= WRITTEN_WITHIN {
            change(&mut self.flow.slots.lock(), self.slot, |slot| slot.written += 1);
        }
    }
}

impl Drop for HeartbeatInFlight<'_> {
    fn drop(&mut self) {
        if !self.is_over && self.began.elapsed() <= WRITTEN_WITHIN {
            change(&mut self.flow.slots.lock(), self.slot, |slot| slot.begun -= 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Heartbeats of a test, each at an instant after the start of the count.
    struct Scene {
        flow: HeartbeatFlow,
    }

    impl Scene {
        fn new() -> Self {
            Self { flow: HeartbeatFlow::new() }
        }

        fn at(&self, millis: u64) -> Instant {
            self.flow.started + Duration::from_millis(millis)
        }

        /// Sends a heartbeat every 100 ms, each answered after `answered_after`, if ever.
        fn heartbeats(&self, from: u64, to: u64, answered_after: Option<u64>) {
            for began in (from..to).step_by(100) {
                let heartbeat = self.flow.begin_at(self.at(began));
                match answered_after {
                    Some(after) => heartbeat.written_at(self.at(began + after)),
                    None => heartbeat.failed(),
                }
            }
        }

        fn gets_through(&self, at: u64) -> bool {
            self.flow.gets_through_at(self.at(at))
        }
    }

    #[test]
    fn a_node_without_heartbeats_counts_as_healthy() {
        assert!(Scene::new().gets_through(60_000));
    }

    #[test]
    fn heartbeats_that_fail_are_noticed_within_two_seconds() {
        let scene = Scene::new();
        scene.heartbeats(0, 10_000, Some(20));
        scene.heartbeats(10_000, 20_000, None);
        assert!(scene.gets_through(10_500), "the latest heartbeats are undecided");
        assert!(!scene.gets_through(12_000));
    }

    #[test]
    fn a_few_late_heartbeats_are_noticed_although_many_were_healthy() {
        let scene = Scene::new();
        scene.heartbeats(0, 10_000, Some(20));
        [10_000, 10_500, 11_000].into_iter().for_each(|began| scene.flow.begin_at(scene.at(began)).failed());
        assert!(!scene.gets_through(11_800));
        assert!(
            !scene.gets_through(17_000),
            "three of the latest eight failed, and nobody sends a heartbeat any more"
        );
    }

    #[test]
    fn two_late_heartbeats_alone_in_five_seconds_are_noticed_and_forgiven() {
        let scene = Scene::new();
        scene.heartbeats(0, 10_000, Some(20));
        [16_000, 16_500].into_iter().for_each(|began| scene.flow.begin_at(scene.at(began)).failed());
        assert!(!scene.gets_through(17_500), "no heartbeat of the latest five seconds got through");
        assert!(scene.gets_through(23_000), "six of the latest eight got through");
    }

    #[test]
    fn heartbeats_without_an_answer_count_before_their_timeout() {
        let scene = Scene::new();
        let pending: Vec<_> = (0..10).map(|i| scene.flow.begin_at(scene.at(i * 100))).collect();
        assert!(!scene.gets_through(2_500));
        pending.into_iter().for_each(HeartbeatInFlight::failed);
    }

    #[test]
    fn late_answers_do_not_count() {
        let scene = Scene::new();
        scene.heartbeats(0, 2_000, Some(501));
        assert!(!scene.gets_through(5_000));
    }

    #[test]
    fn heartbeats_that_get_through_again_are_noticed_within_five_seconds() {
        let scene = Scene::new();
        scene.heartbeats(0, 10_000, None);
        scene.heartbeats(10_000, 15_000, Some(20));
        assert!(scene.gets_through(15_000));
    }

    #[test]
    fn the_last_verdict_stands_until_its_heartbeats_are_old() {
        let scene = Scene::new();
        scene.heartbeats(0, 1_000, None);
        assert!(!scene.gets_through(29_000));
        assert!(scene.gets_through(32_000));
    }

    #[test]
    fn a_heartbeat_cancelled_by_its_caller_does_not_count() {
        let scene = Scene::new();
        (0..10).for_each(|_| drop(scene.flow.begin()));
        assert!(scene.gets_through(5_000));
    }

    #[test]
    fn heartbeats_from_before_a_bucket_is_served_do_not_count() {
        let scene = Scene::new();
        (0..50).for_each(|_| scene.flow.begin().not_served());
        assert!(scene.gets_through(5_000));
        scene.heartbeats(5_000, 6_000, None);
        assert!(!scene.gets_through(8_000), "heartbeats of served buckets fail");
    }

    #[test]
    fn one_of_five_heartbeats_may_fail() {
        let scene = Scene::new();
        for round in (0..8_000).step_by(500) {
            scene.heartbeats(round, round + 400, Some(20));
            scene.heartbeats(round + 400, round + 500, None);
        }
        assert!(scene.gets_through(8_000));
    }

    #[test]
    fn a_lucky_run_on_a_network_that_loses_half_is_not_enough() {
        let scene = Scene::new();
        for round in (0..8_000).step_by(200) {
            scene.heartbeats(round, round + 100, Some(20));
            scene.heartbeats(round + 100, round + 200, None);
        }
        scene.heartbeats(8_000, 8_800, Some(20));
        assert!(!scene.gets_through(10_000));
    }
}
