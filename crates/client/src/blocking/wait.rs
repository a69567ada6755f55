//! Waits of a thread for a future.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Wakes a parked thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for the future. The future needs no runtime: a task of the background thread wakes it.
pub(super) fn wait<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            // A park may end for nothing, and the loop polls again.
            Poll::Pending => thread::park(),
        }
    }
}

/// Waits for the future for at most `timeout`.
pub(super) fn wait_for<F: Future>(future: F, timeout: Duration) -> Option<F::Output> {
    let began = Instant::now();
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
        let rest = timeout.checked_sub(began.elapsed()).filter(|rest| !rest.is_zero())?;
        thread::park_timeout(rest);
    }
}
