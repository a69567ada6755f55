//! Cancellation of a blocked acquire.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

use crate::poll::unless;

/// Ends blocked acquires from another thread. Clones share the state, and a cancelled `Cancel` stays cancelled.
#[derive(Clone, Debug)]
pub struct Cancel {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    is_cancelled: AtomicBool,
    cancelled: Notify,
}

impl Default for Cancel {
    fn default() -> Self {
        Self::new()
    }
}

impl Cancel {
    /// Returns a handle for one or several acquires.
    #[must_use]
    pub fn new() -> Self {
        Self { inner: Arc::default() }
    }

    /// Ends every acquire with this handle by [`Error::Cancelled`](crate::Error::Cancelled), now and later.
    pub fn cancel(&self) {
        self.inner.is_cancelled.store(true, Ordering::Release);
        self.inner.cancelled.notify_waiters();
    }

    /// Returns the output of `future`; `None` if the handle is cancelled before. The future is then dropped.
    pub(super) async fn unless_cancelled<F: Future>(&self, future: F) -> Option<F::Output> {
        // Registered before the read of the flag: a cancel in between wakes the waiter.
        let cancelled = self.inner.cancelled.notified();
        if self.inner.is_cancelled.load(Ordering::Acquire) {
            return None;
        }
        unless(cancelled, future).await
    }
}
