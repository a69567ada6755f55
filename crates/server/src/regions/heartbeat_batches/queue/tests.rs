//! The number of requests, the wait of a heartbeat and the size of a batch, by a clock of the test.

use std::time::Duration;

use super::{BEATS_MAX, BYTES_MAX, BatchQueue, INTERVAL, Step};

const SECOND: Duration = Duration::from_secs(1);

/// A queue with its owner, which wakes the queue on time.
#[derive(Default)]
struct Owner {
    queue: BatchQueue<Duration>,
    wake_at: Option<Duration>,
    requests: usize,
    sent: usize,
    longest_wait: Duration,
}

impl Owner {
    fn push_at(&mut self, now: Duration) {
        self.wake_until(now);
        let step = self.queue.push(now, 200, now);
        self.carry_out(step, now);
    }

    fn wake_until(&mut self, now: Duration) {
        while let Some(at) = self.wake_at.filter(|at| *at <= now) {
            self.wake_at = None;
            let step = self.queue.wake(at);
            self.carry_out(step, at);
        }
    }

    fn carry_out(&mut self, step: Step<Duration>, now: Duration) {
        match step {
            Step::Send(batch) => {
                assert!(!batch.is_empty() && batch.len() <= BEATS_MAX);
                self.requests += 1;
                self.sent += batch.len();
                for pushed in batch {
                    self.longest_wait = self.longest_wait.max(now - pushed);
                }
            }
            Step::WakeAt(at) => {
                assert_eq!(self.wake_at.replace(at), None, "two wake-ups at once");
            }
            Step::Wait => {}
        }
    }
}

/// Returns the number of requests for 33,000 heartbeats a second within 10 s, shared by the nodes of a region. The heartbeats of
/// each burst come at once.
fn requests_in_10_seconds(nodes: u32, burst: u32) -> usize {
    let mut owners: Vec<_> = (0..nodes).map(|_| Owner::default()).collect();
    for index in 0..330_000_u32 {
        let owner = &mut owners[(index % nodes) as usize];
        owner.push_at(10 * SECOND * (index / burst * burst) / 330_000);
    }
    for owner in &mut owners {
        owner.wake_until(11 * SECOND);
        assert!(owner.longest_wait <= INTERVAL, "bursts of {burst}: {:?}", owner.longest_wait);
    }
    assert_eq!(owners.iter().map(|owner| owner.sent).sum::<usize>(), 330_000);
    owners.iter().map(|owner| owner.requests).sum()
}

#[test]
fn heartbeats_of_33_000_a_second_need_at_most_60_requests_a_second() {
    for burst in [1, 10, 333, 1_999, 2_001, 5_500, 33_000] {
        let requests = requests_in_10_seconds(1, burst);
        assert!(requests <= 370, "bursts of {burst}: {requests} requests in 10 s");
    }
    // Three nodes, each with a batch of its own; each may send one more in the time.
    for burst in [1, 10, 333, 1_999, 2_001] {
        let requests = requests_in_10_seconds(3, burst);
        assert!(requests <= 603, "bursts of {burst}: {requests} requests in 10 s by three nodes");
    }
}

#[test]
fn a_heartbeat_after_a_pause_is_sent_at_once_and_the_next_waits_for_the_interval() {
    let mut queue = BatchQueue::default();
    assert_eq!(queue.push(1, 100, SECOND), Step::Send(vec![1]));
    assert_eq!(queue.push(2, 100, SECOND), Step::WakeAt(SECOND + INTERVAL));
    assert_eq!(queue.push(3, 100, SECOND), Step::Wait);
    assert_eq!(queue.wake(SECOND + INTERVAL), Step::Send(vec![2, 3]));
    assert_eq!(queue.push(4, 100, 2 * SECOND), Step::Send(vec![4]));
}

#[test]
fn a_batch_is_split_by_its_bytes() {
    let mut queue = BatchQueue::default();
    assert_eq!(queue.push(1, 100, SECOND), Step::Send(vec![1]));
    assert_eq!(queue.push(2, BYTES_MAX / 2, SECOND), Step::WakeAt(SECOND + INTERVAL));
    assert_eq!(queue.push(3, BYTES_MAX / 2, SECOND), Step::Send(vec![2, 3]));
    assert_eq!(queue.wake(SECOND + INTERVAL), Step::Wait);
}

#[test]
fn a_lost_wake_up_holds_no_heartbeat_back_for_good() {
    let mut queue = BatchQueue::default();
    assert_eq!(queue.push(1, 100, SECOND), Step::Send(vec![1]));
    assert_eq!(queue.push(2, 100, SECOND), Step::WakeAt(SECOND + INTERVAL));
    assert_eq!(queue.push(3, 100, 2 * SECOND), Step::Send(vec![2, 3]));
}
