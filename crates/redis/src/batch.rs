//! Batches concurrent calls of a script into a single command.
//!
//! A script costs Redis about as much to call as to run, and a node about as much to send. A [`Batcher`]
//! therefore keeps few commands in flight, and calls that arrive meanwhile join the next command: the busier
//! a node is, the less a call costs. A call that finds no other call is sent by its caller at once, because a
//! lone caller would only wait for the wake-ups of a task.

use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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
pub struct Batcher<S: SendBatch> {
    queue: mpsc::Sender<Waiting<S::Call, S::Reply>>,
    /// The calls without a reply so far.
    open: Arc<AtomicUsize>,
    /// The sender of calls that find no other call; `None` if every call takes the queue.
    lone: Option<Mutex<S>>,
}

/// A call in the queue.
#[derive(Debug)]
struct Waiting<C, R> {
    call: C,
    reply: oneshot::Sender<R>,
    open: OpenCall,
}

/// Counts a call as open until dropped.
#[derive(Debug)]
struct OpenCall(Arc<AtomicUsize>);

impl OpenCall {
    fn new(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(open))
    }

    /// Opens a call if no other call is open.
    fn lone(open: &Arc<AtomicUsize>) -> Option<Self> {
        let is_lone = open.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        is_lone.then(|| Self(Arc::clone(open)))
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<S: SendBatch> Batcher<S> {
    /// Starts a task for each of `senders`, so the number of senders bounds the commands in flight. A command
    /// takes at most `calls_max` calls, and at most `waiting_max` calls wait. Must be called in the runtime
    /// of the tasks.
    pub fn new(calls_max: usize, waiting_max: usize, senders: impl IntoIterator<Item = S>) -> Self {
        let (queue, waiting) = mpsc::channel(waiting_max);
        let waiting = Arc::new(Mutex::new(waiting));
        for sender in senders {
            tokio::spawn(send_batches(sender, calls_max, Arc::clone(&waiting)));
        }
        Self { queue, open: Arc::default(), lone: None }
    }

    /// Lets a call that finds no other call be sent by its caller, through `sender`: a command beside those of
    /// the tasks.
    #[must_use]
    pub fn with_lone_calls_by(self, sender: S) -> Self {
        Self { lone: Some(Mutex::new(sender)), ..self }
    }

    /// Sends a call, in a batch if other calls are open, and returns the reply, or `None` for a call without a
    /// reply. A full queue exerts backpressure: the caller waits. A caller that stops waiting may take a call
    /// back that no batch has.
    pub async fn call(&self, call: S::Call) -> Option<S::Reply> {
        if let Some(lone) = &self.lone
            && let Some(_open) = OpenCall::lone(&self.open)
            && let Ok(mut sender) = lone.try_lock()
        {
            // The box keeps the future small for the calls that take the queue.
            return Box::pin(sender.send(slice::from_ref(&call))).await.pop();
        }
        let (reply, replied) = oneshot::channel();
        let open = OpenCall::new(&self.open);
        self.queue.send(Waiting { call, reply, open }).await.ok()?;
        replied.await.ok()
    }

    /// Queues a call before returning, so that calls are sent in the order of `try_call`. The future returns the
    /// reply, or `None` for a call without a reply, or if the queue was full.
    pub fn try_call(&self, call: S::Call) -> impl Future<Output = Option<S::Reply>> + Send + use<S> {
        let (reply, replied) = oneshot::channel();
        let open = OpenCall::new(&self.open);
        // A full queue drops `reply`, which ends the wait below.
        let _ = self.queue.try_send(Waiting { call, reply, open });
        async move { replied.await.ok() }
    }
}

/// The queue, shared by the tasks: one task at a time takes a batch.
type SharedQueue<C, R> = Arc<Mutex<Receiver<Waiting<C, R>>>>;

/// Sends the calls of a queue until the queue is closed.
async fn send_batches<S: SendBatch>(mut sender: S, calls_max: usize, queue: SharedQueue<S::Call, S::Reply>) {
    let mut batch = Vec::with_capacity(calls_max);
    let (mut calls, mut callers) = (Vec::with_capacity(calls_max), Vec::with_capacity(calls_max));
    while queue.lock().await.recv_many(&mut batch, calls_max).await > 0 {
        for Waiting { call, reply, open } in batch.drain(..) {
            calls.push(call);
            callers.push((reply, open));
        }
        for (value, (reply, open)) in sender.send(&calls).await.into_iter().zip(callers.drain(..)) {
            // Closed first, so that the next call of a lone caller finds no other call.
            drop(open);
            // The caller may have gone: ignore the error.
            let _ = reply.send(value);
        }
        calls.clear();
    }
}

#[cfg(test)]
mod tests;
