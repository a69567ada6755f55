//! Batches concurrent calls of a script into a single command.
//!
//! A script costs Redis about as much to call as to run, and a node about as much to send. A [`Batcher`]
//! therefore keeps few commands in flight, and calls that arrive meanwhile join the next command: the busier
//! a node is, the less a call costs.

use std::sync::Arc;

use tokio::sync::mpsc::{self, Receiver};
use tokio::sync::{Mutex, oneshot};

/// A sender of batches.
pub trait SendBatch: Send + 'static {
    /// A call.
    type Call: Send + Sync + 'static;
    /// The reply to a call.
    type Reply: Send + 'static;

    /// Sends a batch of at least one call, and returns the replies in the order of the calls. Calls past the
    /// end of the returned replies get no reply.
    fn send(&mut self, calls: &[Self::Call]) -> impl Future<Output = Vec<Self::Reply>> + Send;
}

/// A queue of calls, and tasks that send the calls in batches. The tasks end after the batcher is dropped and
/// the queue is empty.
#[derive(Debug)]
pub struct Batcher<C, R> {
    queue: mpsc::Sender<Waiting<C, R>>,
}

/// A call in the queue.
#[derive(Debug)]
struct Waiting<C, R> {
    call: C,
    reply: oneshot::Sender<R>,
}

impl<C: Send + Sync + 'static, R: Send + 'static> Batcher<C, R> {
    /// Starts a task for each of `senders`, so the number of senders bounds the commands in flight. A command
    /// takes at most `calls_max` calls, and at most `waiting_max` calls wait. Must be called in the runtime
    /// of the tasks.
    pub fn new<S: SendBatch<Call = C, Reply = R>>(
        calls_max: usize,
        waiting_max: usize,
        senders: impl IntoIterator<Item = S>,
    ) -> Self {
        let (queue, waiting) = mpsc::channel(waiting_max);
        let waiting = Arc::new(Mutex::new(waiting));
        for sender in senders {
            tokio::spawn(send_batches(sender, calls_max, Arc::clone(&waiting)));
        }
        Self { queue }
    }

    /// Sends a call in a batch, and returns the reply, or `None` for a call without a reply. A full queue
    /// exerts backpressure: the caller waits.
    pub async fn call(&self, call: C) -> Option<R> {
        let (reply, replied) = oneshot::channel();
        self.queue.send(Waiting { call, reply }).await.ok()?;
        replied.await.ok()
    }

    /// Queues a call before returning, so that calls are sent in the order of `try_call`. The future returns the
    /// reply, or `None` for a call without a reply, or if the queue was full.
    pub fn try_call(&self, call: C) -> impl Future<Output = Option<R>> + Send + use<C, R> {
        let (reply, replied) = oneshot::channel();
        // A full queue drops `reply`, which ends the wait below.
        let _ = self.queue.try_send(Waiting { call, reply });
        async move { replied.await.ok() }
    }
}

/// The queue, shared by the tasks: one task at a time takes a batch.
type SharedQueue<C, R> = Arc<Mutex<Receiver<Waiting<C, R>>>>;

/// Sends the calls of a queue until the queue is closed.
async fn send_batches<S: SendBatch>(mut sender: S, calls_max: usize, queue: SharedQueue<S::Call, S::Reply>) {
    let mut batch = Vec::with_capacity(calls_max);
    let (mut calls, mut replies) = (Vec::with_capacity(calls_max), Vec::with_capacity(calls_max));
    while queue.lock().await.recv_many(&mut batch, calls_max).await > 0 {
        for Waiting { call, reply } in batch.drain(..) {
            calls.push(call);
            replies.push(reply);
        }
        for (value, reply) in sender.send(&calls).await.into_iter().zip(replies.drain(..)) {
            // The caller may have gone: ignore the error.
            let _ = reply.send(value);
        }
        calls.clear();
    }
}

#[cfg(test)]
mod tests;
