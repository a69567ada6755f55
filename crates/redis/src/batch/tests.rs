//! Tests of batching and of backpressure.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

use super::{Batcher, SendBatch};

/// Deadline for a reply, on a busy machine.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// Replies with the double of each call below 100, after a permit from `may_send`. Reports the size of each
/// batch.
struct Doubler {
    may_send: UnboundedReceiver<()>,
    sizes: UnboundedSender<usize>,
}

impl SendBatch for Doubler {
    type Call = u32;
    type Reply = u32;

    async fn send(&mut self, calls: &[u32]) -> Vec<u32> {
        self.sizes.send(calls.len()).expect("the test listens");
        self.may_send.recv().await;
        calls.iter().take_while(|call| **call < 100).map(|call| call * 2).collect()
    }
}

fn doubler() -> (Doubler, UnboundedSender<()>, UnboundedReceiver<usize>) {
    let ((allow, may_send), (sizes, seen)) = (unbounded_channel(), unbounded_channel());
    (Doubler { may_send, sizes }, allow, seen)
}

#[tokio::test]
async fn calls_that_arrive_while_a_command_is_under_way_go_together_with_the_next() {
    let (sender, allow, mut sizes) = doubler();
    let batcher = Batcher::new(4, 16, [sender]);
    let first = batcher.call(1);
    let rest = async {
        assert_eq!(sizes.recv().await, Some(1));
        let rest = join_all((2..8).map(|call| batcher.call(call)));
        let allow = async {
            // Each of the six calls was polled once and is in the queue.
            tokio::task::yield_now().await;
            (0..3).for_each(|_| allow.send(()).expect("the sender waits"));
        };
        tokio::join!(rest, allow).0
    };
    let (first, rest) = tokio::join!(first, rest);
    assert_eq!((first, rest), (Some(2), (2..8).map(|call| Some(call * 2)).collect()));
    assert_eq!((sizes.recv().await, sizes.recv().await), (Some(4), Some(2)));
}

#[tokio::test]
async fn a_call_past_the_end_of_the_replies_has_none_and_the_next_batch_is_sent() {
    let (sender, allow, _sizes) = doubler();
    let batcher = Batcher::new(4, 16, [sender]);
    (0..3).for_each(|_| allow.send(()).expect("the sender waits"));
    assert_eq!(batcher.call(100).await, None);
    assert_eq!(batcher.call(7).await, Some(14));
}

#[tokio::test]
async fn a_full_queue_refuses_who_does_not_wait() {
    let (sender, allow, mut sizes) = doubler();
    let batcher = Batcher::new(1, 1, [sender]);
    let under_way = batcher.call(1);
    let others = async {
        sizes.recv().await;
        let refused = async {
            // The competing future was polled, so the queue is full.
            tokio::task::yield_now().await;
            let refused = batcher.try_call(3).await;
            (0..2).for_each(|_| allow.send(()).expect("the sender waits"));
            refused
        };
        tokio::join!(batcher.call(2), refused)
    };
    let (first, (waited, refused)) = tokio::join!(under_way, others);
    assert_eq!((first, waited, refused), (Some(2), Some(4), None));
}

#[tokio::test]
async fn a_lone_call_is_sent_by_its_caller_and_a_second_call_takes_the_queue() {
    let ((lone, allow_lone, mut lone_sizes), (sender, allow, mut sizes)) = (doubler(), doubler());
    let batcher = Batcher::new(4, 16, [sender]).with_lone_calls_by(lone);
    let second = async {
        assert_eq!(lone_sizes.recv().await, Some(1));
        allow.send(()).expect("the sender waits");
        let doubled = batcher.call(2).await;
        allow_lone.send(()).expect("the sender waits");
        doubled
    };
    assert_eq!(tokio::join!(batcher.call(1), second), (Some(2), Some(4)));
    assert_eq!(sizes.recv().await, Some(1));

    allow_lone.send(()).expect("the sender waits");
    let again = timeout(WAIT_MAX, batcher.call(3)).await.expect("the call finds no other call");
    assert_eq!((again, lone_sizes.recv().await), (Some(6), Some(1)));
}

#[tokio::test]
async fn a_caller_that_leaves_is_no_longer_open() {
    let ((lone, allow_lone, mut lone_sizes), (sender, _allow, _sizes)) = (doubler(), doubler());
    let batcher = Batcher::new(4, 16, [sender]).with_lone_calls_by(lone);
    let mut left = Box::pin(batcher.call(1));
    assert!(futures_util::poll!(&mut left).is_pending());
    drop(left);
    allow_lone.send(()).expect("the sender waits");
    let next = timeout(WAIT_MAX, batcher.call(2)).await.expect("the call finds no other call");
    assert_eq!(next, Some(4));
    assert_eq!((lone_sizes.recv().await, lone_sizes.recv().await), (Some(1), Some(1)));
}
