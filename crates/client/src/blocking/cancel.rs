//! Cancellation of a blocked acquire.

use std::future::Future;
use std::sync::Arc;

use tokio::sync::watch;

/// Ends blocked acquires from another thread. Clones share the state, and a cancelled `Cancel` stays cancelled.
#[derive(Clone, Debug)]
pub struct Cancel {
    cancelled: Arc<watch::Sender<bool>>,
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
        Self { cancelled: Arc::new(watch::Sender::new(false)) }
    }

    /// Ends every acquire with this handle by [`Error::Cancelled`](crate::Error::Cancelled), now and later.
    pub fn cancel(&self) {
        self.cancelled.send_replace(true);
    }

    /// Returns the output of `future`; `None` if the handle is cancelled before. The future is then dropped.
    pub(super) async fn unless_cancelled<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut cancelled = self.cancelled.subscribe();
        tokio::select! {
            biased;
            _ = cancelled.wait_for(|cancelled| *cancelled) => None,
            output = future => Some(output),
        }
    }
}
